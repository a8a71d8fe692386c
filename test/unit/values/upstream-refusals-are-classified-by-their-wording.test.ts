/** docs/translation-rules.md rule 47: how servers word the reasons for which they refuse a request. */
import assert from "node:assert/strict";
import test from "node:test";
import {
  type RefusalMeaning,
  refusalCode,
  refusalMeaning,
  refusesReasoning,
  tooLongSentence,
} from "../../../src/values/upstream-refusals.ts";

/** A server's message, and the two numbers in it: the tokens that were sent and those that fit. */
const TOO_LONG: readonly (readonly [string, string])[] = [
  [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.",
    "10000 tokens > 8192 maximum",
  ],
  [
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion).",
    "70000 tokens > 65536 maximum",
  ],
  [
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "1200000 tokens > 1048576 maximum",
  ],
  ["The input (9,000 tokens) is longer than the model's context length (8,192 tokens).", "9000 tokens > 8192 maximum"],
  ["The decoder prompt (length 9000) is longer than the maximum model length of 4096.", "9000 tokens > 4096 maximum"],
  [
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "40000 tokens > 32768 maximum",
  ],
  [
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "200000 tokens > 131072 maximum",
  ],
  [
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    "5000 tokens > 4081 maximum",
  ],
  ["prompt token count of 65446 exceeds the limit of 64000", "65446 tokens > 64000 maximum"],
  [
    "Failed to start sampling: [input_too_large] Current message (1149677 tokens) exceeds budget (975424 tokens)",
    "1149677 tokens > 975424 maximum",
  ],
  [
    "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
    "42328 tokens > 40000 maximum",
  ],
  [
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096).",
    "13055 tokens > 4096 maximum",
  ],
  [
    "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens",
    "111490 tokens > 32768 maximum",
  ],
  ["Input tokens exceed the configured limit of 272000 tokens.", ""],
  ["the request exceeds the available context size (4096 tokens), try increasing it", ""],
  ["Your input exceeds the context window of this model. Please adjust your input and try again.", ""],
  ["Invalid request: Your request exceeded model token limit: 131072", ""],
  ["invalid params, context window exceeds limit (2013)", ""],
  ["Range of input length should be [1, 129024]", ""],
  ["Input is too long for requested model.", ""],
  ["Prompt exceeds max length", ""],
];

test("reasoning from another server is recognised by code or sentence, and other errors about reasoning are not mistaken for it", () => {
  const refused = [
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.3.content.0: Invalid signature in thinking block",
    "ValidationException: ***.***.content.0: Invalid `signature` in `thinking` block (request id: 2026)",
    "messages.7.content.66: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks",
    "messages.1.content.0: the thinking block's signature is bound to a different conversation",
    "messages.1.content.0: this `thinking` block is bound to another account",
    "messages.1.content.0: this `thinking` block is bound to a different organization",
    "messages.1.content.0: the signature is bound to another workspace",
    "The encrypted content gAAA...DQ== could not be verified.",
    "The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
  ];
  for (const words of refused) assert.ok(refusesReasoning(["invalid_request_error", undefined], words), words);
  assert.ok(refusesReasoning(["invalid_encrypted_content"], undefined));
  const other = [
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final",
    "thinking.budget_tokens: Input should be greater than or equal to 1024",
    "Function call is missing a thought_signature in functionCall parts.",
    "messages: text content blocks must be non-empty",
    `${"a prompt that is quoted ".repeat(20)} Invalid signature in thinking block`,
  ];
  for (const words of other) assert.ok(!refusesReasoning(["invalid_request_error", 400], words), words);
  assert.ok(!refusesReasoning([], undefined));
});

test("a context overflow is recognised by its sentence, and its numbers are found", () => {
  for (const [words, counts] of TOO_LONG) {
    assert.equal(refusalMeaning(["invalid_request_error", null], words), "context_length_exceeded", words);
    const sentence = tooLongSentence(words);
    assert.equal(sentence, `prompt is too long: ${counts === "" ? "" : `${counts}. `}${words}`);
  }
});

test("the vendor's own sentence is kept", () => {
  const own = "prompt is too long: 210000 tokens > 200000 maximum";
  assert.equal(refusalMeaning(["invalid_request_error"], own), "context_length_exceeded");
  assert.equal(tooLongSentence(own), own);
});

test("a limit further on in the message, where a prompt may be quoted, is not taken for the server's", () => {
  const words = `Input is too long (5000 tokens). ${"x".repeat(300)} The maximum context length is 4096.`;
  assert.equal(tooLongSentence(words), `prompt is too long: ${words}`);
});

test("moderation is recognised by the wording of servers that answer it with 403, and a too large request by its first words", () => {
  const flagged = "Your chosen model requires moderation and your input was flagged";
  const unsafe =
    "Content violates usage guidelines. Team: t, API key ID: k, Model: m, Failed check: SAFETY_CHECK_TYPE_BIO";
  for (const words of [flagged, unsafe]) assert.equal(refusalMeaning([403], words), "content_policy_violation", words);
  const large = "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 61337.";
  assert.equal(refusalMeaning(["tokens", "rate_limit_exceeded"], large), "beyond_rate");
  assert.equal(refusalMeaning([], "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000"), undefined);
  assert.equal(refusalMeaning([], `Slow down: "${large}"`), undefined);
  assert.equal(refusalCode("insufficient_quota"), undefined);
});

test("codes and types mean the same as sentences", () => {
  assert.equal(refusalMeaning([400, "exceed_context_size_error"], "words"), "context_length_exceeded");
  assert.equal(refusalMeaning(["content_filter"], undefined), "content_policy_violation");
  assert.equal(refusalMeaning(["image_too_large"], undefined), "invalid_image");
  assert.equal(refusalMeaning(["invalid_image_url"], undefined), "invalid_image");
  assert.equal(refusalMeaning(["imagery_error"], undefined), undefined);
  assert.equal(refusalMeaning(["Unsupported_Parameter"], undefined), "unsupported_parameter");
  for (const code of ["insufficient_quota", "exceeded_current_quota_error", "billing_not_active", "billing_error"]) {
    assert.equal(refusalMeaning([code], undefined), "quota", code);
  }
  assert.equal(refusalMeaning([], "Your credit balance is too low to access the API."), "quota");
});

test("an exhausted account quota is recognised by the start of a message, and not where a message quotes it", () => {
  const own = [
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing",
    "Insufficient Balance",
    "insufficient account balance (1008)",
    "Access denied, your account is overdue",
    "Your account is in arrears, please recharge and try again.",
  ];
  for (const words of own) assert.equal(refusalMeaning(["invalid_request_error"], words), "quota", words);
  const quoted = [
    "Invalid schema for function 'f': 'credit balance is too low' is not valid under any of the given schemas.",
    "'insufficient balance' is not one of ['low', 'high']",
    '"Your credit balance is too low" is no role',
    "tools.0.name: your account is overdue: does not match",
  ];
  for (const words of quoted) assert.equal(refusalMeaning(["invalid_request_error"], words), undefined, words);
});

/** Texts that a server may write before its sentence, and that some write in its place. */
const BEFORE: readonly string[] = [
  "",
  "Error: ",
  "Error code: 400 - ",
  "Error code: 400 - {'error': {'message': \"",
  "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - ",
  "<400> InternalError.Algo.InvalidParameter: ",
  "400: ",
  "Bad Request: ",
  "Input validation error: ",
  "Provider returned error: ",
  "Error from provider (DeepSeek): ",
  "OpenAI: ",
];

/** The sentences of each meaning, as servers write them. */
const SAID: readonly (readonly [string, RefusalMeaning])[] = [
  ...TOO_LONG.map(([words]) => [words, "context_length_exceeded"] as const),
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens",
    "context_length_exceeded",
  ],
  ["`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", "context_length_exceeded"],
  ["input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "context_length_exceeded"],
  ["This endpoint's maximum context length is 131072 tokens. However, you requested 140000", "context_length_exceeded"],
  [
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "content_policy_violation",
  ],
  ["Input data may contain inappropriate content.", "content_policy_violation"],
  ["Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "content_policy_violation"],
  ["Could not process image", "invalid_image"],
  ["messages.0.content.1.image.source.base64: Could not process image", "invalid_image"],
];

test("a sentence is recognised after the prefixes that routers and SDKs write", () => {
  for (const before of BEFORE) {
    for (const [words, meaning] of SAID) {
      assert.equal(refusalMeaning(["invalid_request_error"], before + words), meaning, before + words);
    }
  }
});

/** How servers repeat what a client has sent. */
const REPEATED: readonly ((words: string) => string)[] = [
  (words) => `Invalid value: '${words}'. Supported values are: 'user' and 'assistant'.`,
  (words) => `Invalid enum value. Expected 'user' | 'assistant', received '${words}'`,
  (words) => `'${words}' is not one of ['low', 'high'] - 'reasoning_effort'`,
  (words) => `Invalid schema for function 'f': "${words}" is not valid under any of the given schemas.`,
  (words) => `tools.0.name: ${words}: does not match`,
  (words) => `messages.0.role: ${words} is no role`,
  (words) => `Unknown parameter: ${words}`,
  (words) => `Unknown model: ${words}`,
  (words) => `1 validation error for Request\nrole\n  Input should be 'user' [input_value='${words}', input_type=str]`,
  (words) => `Expected a role, got \u201c${words}\u201d`,
  (words) => `Expected a role, got '${words} which goes on`,
  (words) => `Error code: 400 - Invalid 'tools[0].function.name': "${words}"`,
  (words) => `json: cannot unmarshal "${words.replaceAll('"', '\\"')} \\" more" into Go struct field`,
];

test("a sentence of the client's that a server repeats has no effect", () => {
  const reasoning = ["Invalid signature in thinking block", "The encrypted content gAAA could not be verified."];
  for (const repeated of REPEATED) {
    for (const [words] of SAID) {
      if (words.startsWith("messages.") || words.startsWith("'")) continue;
      assert.equal(refusalMeaning(["invalid_request_error"], repeated(words)), undefined, repeated(words));
    }
    for (const words of reasoning) {
      const said = repeated(words);
      assert.ok(!refusesReasoning(["invalid_request_error"], said), said);
    }
  }
});

test("a prompt that is quoted further on has no effect", () => {
  const quotes = `messages.0: unknown member. ${"x".repeat(300)} prompt is too long`;
  assert.equal(refusalMeaning(["invalid_request_error"], quotes), undefined);
  const name = "Invalid 'tools[0].name': longer than the maximum of 64 characters.";
  assert.equal(refusalMeaning(["invalid_request_error", "string_above_max_length"], name), undefined);
  assert.equal(refusalMeaning(["invalid_request_error", 7, {}], { text: "prompt is too long" }), undefined);
});
