/**
 * The meaning of a model server's refusal, however it is expressed (docs/translation-rules.md rule 47): by code, by
 * type, by known sentences. Pure.
 */
import { isObject } from "./json-object.ts";

/** Refusals that clients distinguish, by the code that they know. */
export type RefusalCode =
  | "context_length_exceeded"
  | "content_policy_violation"
  | "invalid_image"
  | "unsupported_parameter";

/**
 * `quota`: the operator's account at the vendor has no quota left, which the client cannot change. `beyond_rate`: this
 * one request exceeds what the account may use in a minute, so waiting does not help it, and other requests are not
 * affected. `credential`: the operator's key is refused.
 */
export type RefusalMeaning = RefusalCode | "quota" | "credential" | "beyond_rate";

/** What programs read of an upstream's error, as it wrote it: its code, the parameter that it blames, its details. */
export interface UpstreamErrorNames {
  readonly code?: unknown;
  readonly param?: unknown;
  /** Anthropic's: an `error_code` and what belongs to it. */
  readonly details?: unknown;
}

/** The code of an error object: Anthropic writes it into the `details`. */
export function codeIn({ code, details }: UpstreamErrorNames): unknown {
  return code ?? (isObject(details) ? details.error_code : undefined);
}

/** Whether a refusal is about the operator's account: no other request fares better, and no client can help it. */
export function isOfOperator(meaning: RefusalMeaning | undefined): boolean {
  return meaning === "quota" || meaning === "credential";
}

/** Codes and types of vendors, in lowercase. */
const NAMES: ReadonlyMap<string, RefusalMeaning> = new Map<string, RefusalMeaning>([
  ["context_length_exceeded", "context_length_exceeded"],
  // llama.cpp
  ["exceed_context_size_error", "context_length_exceeded"],
  ["content_policy_violation", "content_policy_violation"],
  // GitHub Copilot
  ["model_max_prompt_tokens_exceeded", "context_length_exceeded"],
  // OpenAI, for kinds of refused content
  ["bio_policy", "content_policy_violation"],
  ["cyber_policy", "content_policy_violation"],
  ["misalignment_policy_violation", "content_policy_violation"],
  // Azure OpenAI, Kimi, Alibaba
  ["content_filter", "content_policy_violation"],
  ["data_inspection_failed", "content_policy_violation"],
  ["unsupported_parameter", "unsupported_parameter"],
  ["unsupported_value", "unsupported_parameter"],
  ["unknown_parameter", "unsupported_parameter"],
  ["insufficient_quota", "quota"],
  // Kimi
  ["exceeded_current_quota_error", "quota"],
  ["billing_not_active", "quota"],
  ["billing_error", "quota"],
  ["invalid_api_key", "credential"],
  // Anthropic, in the details
  ["contract_spend_limit_reached", "quota"],
  ["enforced_spend_limit_reached", "quota"],
  ["organization_on_hold", "credential"],
  ["cmek_key_disabled", "credential"],
  ["cmek_key_network_blocked", "credential"],
  ["claude_code_key_creator_not_member", "credential"],
]);

/** `invalid_image_url`, `image_too_large` and similar codes. */
const IMAGE_CODE = /(^|_)image(_|$)/;

/**
 * Known sentences. They are searched only in the server's own words (`saysItself`), because a message may repeat what
 * the client has sent. Those about the operator's account must be at the very beginning, because they eject the
 * upstream. From OpenAI, Azure, GitHub Copilot, Groq, Cerebras, LM Studio, vLLM, SGLang, llama.cpp, TGI, Anthropic,
 * Bedrock, Gemini, Mistral, xAI, Cohere, Kimi, Z.ai, MiniMax, Alibaba (November 2026).
 */
const SENTENCES: readonly (readonly [RegExp, RefusalMeaning])[] = [
  [
    /^\s*(?:error: |access denied[,.:] )?(?:(?:your|this|the) )?(?:credit balance is too low|insufficient (?:account )?balance|account (?:is )?(?:overdue|in arrears))/i,
    "quota",
  ],
  // xAI and Gemini answer 400.
  [/^\s*(?:error: )?(?:incorrect api key provided|api key not (?:valid|found)|invalid api key)\b/i, "credential"],
  [
    new RegExp(
      [
        "prompt is too long|input is too long|prompt exceeds max length|too many tokens: ",
        "maximum (?:context|prompt|model) length|longer than the (?:model's context|maximum model) length",
        "exceeds? (?:the |your )?(?:available |model'?s? )?(?:context (?:window|size|length|limit)|token limit)",
        "exceeded model token limit|context window exceeds|exceeds the context window|exceed context limit",
        "prompt token count of \\d+ exceeds|\\[input_too_large\\]|tokens exceed the configured limit|greater than the context length",
        "keep the first \\d+ tokens when context the overflows|^please reduce the length of the messages",
        "input token count[^.]{0,40} exceeds|range of input length should be|`inputs` tokens \\+ `max_new_tokens`",
      ].join("|"),
      "i",
    ),
    "context_length_exceeded",
  ],
  [
    // The last two are from OpenRouter and xAI, both with 403.
    /content management policy|data may contain inappropriate content|flagged (?:as|for) .{0,60}policy|your input was flagged|content violates usage guidelines/i,
    "content_policy_violation",
  ],
  [/^request too large for [^.]{0,200} limit \d/i, "beyond_rate"],
  [
    /could not process image|(?:invalid|unsupported|corrupt(?:ed)?) image|unable to process input image/i,
    "invalid_image",
  ],
];

/** How many characters of a message are searched for the server's own words. */
const OWN_WORDS_CHARS = 300;

/** What servers, routers and SDKs write in front of a message, possibly several of them. */
const PREFIX = new RegExp(
  [
    "error code:? \\d+ - |(?:http |status |code )*\\d{3}(?: bad request)?: |<\\d{3}> |\\[\\d{3}\\] ",
    "[\\w.]*(?:error|exception|failed|invalidparameter)(?::| -) |(?:[a-z]+ ){0,3}(?:error|request|params): |invalid prompt: ",
    "the model returned the following errors: |failed to start sampling: |error from [^:\"']{1,40}: |\\{.{0,80}?[\"']message[\"']: ?[\"']",
    "(?:openai|azure|anthropic|claude|amazon|aws|bedrock|vertex|google|gemini|mistral|xai|grok|cohere|moonshot|kimi|zhipu|z\\.ai|glm): ",
    "(?:minimax|alibaba|dashscope|qwen|deepseek|groq|cerebras|fireworks|together|openrouter|vllm|sglang|llama\\.cpp|ollama|tgi|nvidia): ",
  ].join("|"),
  "iy",
);
const PREFIXES_MAX = 8;

/** The path of a content block that a server cannot read, in front of the message about it. */
const BLOCK_PATH = /(?:messages|input|\*{3})[\w.*[\]]{0,40}content[\w.*[\]]{0,60}: /y;

/** Text in quotation marks, an unclosed one to the end; an apostrophe inside a word does not count. */
const QUOTED =
  /"(?:[^"\\]|\\.)*(?:"|$)|(?<!\w)'(?:[^']|'(?=\w))*(?:'(?!\w)|$)|\u201c[^\u201d]*(?:\u201d|$)|\u2018[^\u2019]*(?:\u2019|$)/g;

/** Usually followed by a value that a client has sent. Numbers are the server's. */
const VALUE_FOLLOWS = /:\s+(?!\d)|\n/;

/**
 * Whether a message contains this in the server's own words: before any value that it repeats, and outside quotation
 * marks. The match may extend beyond that.
 */
function saysItself(message: string, sentence: RegExp, beforeIt: readonly RegExp[]): boolean {
  const begins = message.slice(0, OWN_WORDS_CHARS).trimStart();
  let at = 0;
  for (let round = 0; round < PREFIXES_MAX; round++) {
    const next = beforeIt.map((prefix) => endOf(prefix, begins, at)).find((end) => end > at);
    if (next === undefined) break;
    at = next;
  }
  const own = begins.slice(at).replace(QUOTED, "''");
  const found = sentence.exec(own);
  if (!found) return false;
  const value = own.search(VALUE_FOLLOWS);
  return value < 0 || found.index <= value;
}

function endOf(prefix: RegExp, text: string, at: number): number {
  prefix.lastIndex = at;
  return prefix.test(text) ? prefix.lastIndex : at;
}

const PREFIXES = [PREFIX];
const PREFIXES_AND_PATH = [PREFIX, BLOCK_PATH];

/**
 * The meaning of a refusal; undefined if it is none of these.
 * @param names its `code`, `type` and similar members, of any type.
 * @param message its text.
 */
export function refusalMeaning(names: readonly unknown[], message: unknown): RefusalMeaning | undefined {
  const codes = names.filter((name): name is string => typeof name === "string").map((name) => name.toLowerCase());
  for (const name of codes) {
    const known = NAMES.get(name);
    if (known !== undefined) return known;
  }
  if (codes.some((name) => IMAGE_CODE.test(name))) return "invalid_image";
  if (typeof message !== "string") return undefined;
  return SENTENCES.find(([sentence, meaning]) => {
    if (isOfOperator(meaning)) return sentence.test(message);
    return saysItself(message, sentence, meaning === "invalid_image" ? PREFIXES_AND_PATH : PREFIXES);
  })?.[1];
}

/**
 * The code for refused reasoning: the server did not produce it, or produced it for another account or conversation.
 */
export const REASONING_REFUSED = "invalid_encrypted_content";

/**
 * Known sentences for it: Anthropic's (also via Bedrock, Vertex and routers; public reports:
 * anthropics/claude-code#10627 and #63283), OpenAI's and Azure's (openai/codex#8145, openai/openai-agents-python#2063).
 * The demand that a turn must begin with thinking is not included, because sending less of it would not help.
 */
const REASONING_SENTENCES = new RegExp(
  [
    "invalid `?signature`? in `?thinking`? block",
    "`?thinking`? or `?redacted_thinking`? blocks in the latest assistant message cannot be modified",
    "(?:thinking|signature)[^.]{0,80} bound to (?:a different|another) (?:conversation|account|organization|workspace)",
    "encrypted content [^\\n]{0,120}could not be (?:verified|decrypted)",
  ].join("|"),
  "i",
);

/**
 * Whether a refusal is about reasoning that came back to the wrong server; `names` and `message` as for
 * `refusalMeaning`.
 */
export function refusesReasoning(names: readonly unknown[], message: unknown): boolean {
  if (names.includes(REASONING_REFUSED)) return true;
  return typeof message === "string" && saysItself(message, REASONING_SENTENCES, PREFIXES_AND_PATH);
}

/** Words for a failure inside a server: vLLM's, SGLang's and Python's own. */
const ILL = new RegExp(
  [
    "internal (?:server )?error|server error|engine ?(?:core|loop|process)?.{0,20}(?:dead|died|errored|encountered|crash)|background loop",
    "cuda|out of memory|nccl|traceback|stack trace|assertion|has no attribute|not subscriptable|index out of range",
    "connection (?:error|reset|refused|aborted|closed)|timed out|overloaded|unavailable|worker (?:died|failed)|try again",
  ].join("|"),
  "i",
);

/** Whether the message of an error with a 4xx status is about the server after all, or is empty. */
export function blamesServer(message: unknown): boolean {
  if (typeof message !== "string" || message.trim() === "") return true;
  return /^\s*(?:internal|runtime|assertion) ?(?:server )?error/i.test(message) || saysItself(message, ILL, PREFIXES);
}

/** Meanings that clients know by one code, whatever the server calls them (rule 47). */
const UNITED: ReadonlySet<RefusalCode | undefined> = new Set<RefusalCode>([
  "context_length_exceeded",
  "content_policy_violation",
]);

/** Codes for which Codex shows a notice of its own and ends the turn (openai/codex#31439). */
export const NOTICE_CODES: ReadonlySet<string> = new Set(["bio_policy", "cyber_policy"]);

/**
 * The code of a rejection for the client: the one of its meaning if that has one code for all servers, else the
 * server's own, which says more, else the one of its meaning.
 */
export function shownCode(known: RefusalCode | undefined, own: string | undefined): string | undefined {
  if (own === undefined || NOTICE_CODES.has(own)) return own ?? known;
  return UNITED.has(known) ? known : own;
}

/** The code as clients know it; undefined for any other. */
export function refusalCode(code: unknown): RefusalCode | undefined {
  return codeOfMeaning(refusalMeaning([code], undefined));
}

/** The client's code for the meaning of a refusal; undefined if it is about the operator's account. */
export function codeOfMeaning(meaning: RefusalMeaning | undefined): RefusalCode | undefined {
  return meaning === "quota" || meaning === "credential" || meaning === "beyond_rate" ? undefined : meaning;
}

/** The sentence on which a messages client compacts its conversation: the vendor's own. */
const TOO_LONG = "prompt is too long";
const LIMIT =
  /\[\s*1\s*,\s*(\d[\d,]*)\s*\]|(?:maximum (?:context|prompt|model) length|context (?:length(?! \(n_keep)|size|window|limit)|maximum number of tokens allowed|cannot exceed|token limit|must be <=|exceeds the limit of|exceeds budget|while limit is|n_ctx)\D{0,30}(\d[\d,]*)|(\d[\d,]*)\s*(?:tokens? )?maximum/i;
const NUMBER = /\d[\d,]{2,}/g;

/**
 * A context overflow in the words of the messages protocol: `prompt is too long: N tokens > M maximum`, with the
 * numbers that the server gave, and its message.
 */
export function tooLongSentence(words: string): string {
  if (words.toLowerCase().startsWith(TOO_LONG)) return words;
  const begins = words.slice(0, OWN_WORDS_CHARS);
  const found = LIMIT.exec(begins);
  const most = numberOf(found?.[1] ?? found?.[2] ?? found?.[3]);
  const all = (begins.match(NUMBER) ?? []).map((text) => numberOf(text) ?? 0);
  const tokens = Math.max(...all.filter((one) => one > (most ?? Number.POSITIVE_INFINITY)));
  const counts = most !== undefined && Number.isFinite(tokens) ? `${tokens} tokens > ${most} maximum. ` : "";
  return `${TOO_LONG}: ${counts}${words}`;
}

function numberOf(text: string | undefined): number | undefined {
  const value = text === undefined ? Number.NaN : Number(text.replaceAll(",", ""));
  return Number.isSafeInteger(value) ? value : undefined;
}
