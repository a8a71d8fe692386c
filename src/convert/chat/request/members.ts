/**
 * The members that the decoder of chat requests reads; every other member is named (docs/translation-rules.md rules 2,
 * 3 and 31).
 */
import { byMember, reads } from "../../rules/unread.ts";

/** `cache_control`: a breakpoint as in messages, which OpenRouter and LiteLLM also take on chat. */
const MARKS = "prompt_cache_breakpoint cache_control";
/** A lifetime of 30 minutes is between the two of messages; the shorter one is used. */
const MARK = reads({ read: "mode", responses: "ttl", hint: "ttl", unsaid: { ttl: ["12h"] } });

/** An unknown lifetime becomes the default, and an unknown type an ordinary breakpoint. */
const CONTROL = reads({ hint: "type ttl scope", unsaid: { type: ["ephemeral"], ttl: ["5m", "1h"] } });

/** Text in positions where only messages can mark a cache. */
const MARKED = { prompt_cache_breakpoint: MARK, cache_control: CONTROL };
const PLAIN_TEXT = reads({ read: "type text", messages: MARKS, hint: MARKS }, MARKED);
/** An image of a user, or one that a model made. */
const IMAGE = reads(
  { read: `type ${MARKS}` },
  {
    ...MARKED,
    image_url: reads({ read: "url", responses: "detail", lost: "detail", unsaid: { detail: ["auto"] } }),
  },
);

const USER_PART = byMember("type", {
  text: reads({ read: `type text ${MARKS}` }, MARKED),
  image_url: IMAGE,
  file: reads(
    { read: `type ${MARKS}` },
    { ...MARKED, file: reads({ read: "file_data file_id filename", lost: "detail format" }) },
  ),
});

/** `parsed_arguments`, and `parsed` of a message: OpenAI's SDK adds what it has read of the arguments or the text. */
const CALL = reads(
  { read: "id type", hint: "index" },
  { function: reads({ read: "name arguments", hint: "parsed_arguments" }), custom: reads({ read: "name input" }) },
);

const SYSTEM = reads({ read: "role", lost: "name" }, { content: PLAIN_TEXT });

const MESSAGE = byMember("role", {
  system: SYSTEM,
  developer: SYSTEM,
  user: reads({ read: "role", lost: "name" }, { content: USER_PART }),
  assistant: reads(
    { read: "role refusal reasoning_content reasoning audio", lost: "name", hint: "annotations parsed" },
    {
      content: byMember("type", { text: PLAIN_TEXT, image_url: IMAGE, refusal: reads({ read: "type refusal" }) }),
      // OpenRouter puts images that a model has made next to the text.
      images: IMAGE,
      tool_calls: CALL,
      function_call: reads({ read: "name arguments" }),
    },
  ),
  tool: reads({ read: "role tool_call_id", hint: "name" }, { content: USER_PART }),
  function: reads({ read: "role content name" }),
});

const FUNCTION = reads(
  {
    read: "name description parameters strict",
    messages: "cache_control",
    hint: "cache_control defer_loading",
  },
  { cache_control: CONTROL },
);

/** Hosted tools have no table: they are left out and named as a whole. */
const TOOL = byMember(
  "type",
  {
    function: reads(
      { read: "type", messages: "cache_control", hint: "cache_control defer_loading eager_input_streaming" },
      { function: FUNCTION, cache_control: CONTROL },
    ),
    custom: reads(
      { read: "type", hint: "cache_control" },
      { custom: reads({ read: "name description" }, { format: reads({ read: "type grammar" }) }) },
    ),
  },
  "function",
);

export const CHAT_READS = reads(
  {
    read: `model max_tokens max_completion_tokens stop response_format verbosity reasoning_effort logprobs top_logprobs
      temperature top_p top_k parallel_tool_calls tool_choice function_call safety_identifier user service_tier
      prompt_cache_key prompt_cache_options prompt_cache_retention metadata moderation stream n modalities audio
      enable_thinking thinking_budget web_search_options seed prediction frequency_penalty presence_penalty logit_bias inference_geo`,
    messages: "cache_control",
    // `usage`: OpenRouter's request for the usage that every answer has.
    hint: "store usage cache_control",
    refusals: `include_reasoning separate_reasoning stream_reasoning skip_special_tokens spaces_between_special_tokens
      add_generation_prompt add_special_tokens do_sample cache_prompt`,
    unsaid: { speed: ["standard"] },
  },
  {
    messages: MESSAGE,
    tools: TOOL,
    functions: FUNCTION,
    cache_control: CONTROL,
    stream_options: reads({
      read: "include_usage",
      hint: "include_obfuscation continuous_usage_stats chunk_include_usage",
    }),
    // `decodeReasoning` reads these additions of servers, and names those that it cannot follow (rule 27).
    thinking: reads({ read: "type budget_tokens" }),
    reasoning: reads({ read: "effort max_tokens enabled" }),
    chat_template_kwargs: reads({ read: "enable_thinking thinking thinking_budget" }),
  },
);
