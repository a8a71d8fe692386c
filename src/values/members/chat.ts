/** Members of a chat completions request: the official ones, and those of other servers with this protocol. */

import { joined, shape } from "./shape.ts";
import { CACHE_CONTROL, MODERATION, REASONING, SHARED, STREAM_OPTIONS, TEMPLATE_SWITCHES } from "./shared.ts";

const FUNCTION = shape({ plain: "name description parameters strict defer_loading cache_control" });

const TOOL = shape(
  { plain: "type name description parameters strict defer_loading eager_input_streaming" },
  { function: FUNCTION, custom: shape({ plain: "name description format" }), cache_control: CACHE_CONTROL },
);

const NAMED = shape({ plain: "name" });
const TOOL_NAME = shape({ plain: "type name" }, { function: NAMED, custom: NAMED });

const TOOL_CHOICE = shape(
  { plain: "type name mode" },
  {
    function: NAMED,
    custom: NAMED,
    tools: TOOL_NAME,
    allowed_tools: shape({ plain: "mode" }, { tools: TOOL_NAME }),
  },
);

const OFFICIAL = shape(
  {
    plain: `
      messages model frequency_penalty function_call logit_bias logprobs max_completion_tokens max_tokens metadata n
      parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format
      safety_identifier seed stop store stream temperature top_logprobs top_p user verbosity`,
    // Audio costs more than text.
    tier: "modalities audio",
    option: "web_search_options",
    limit: "max_output_tokens",
  },
  {
    audio: shape({ plain: "format voice" }),
    functions: shape({ plain: "name description parameters strict" }),
    moderation: MODERATION,
    prediction: shape({ plain: "type content" }),
    prompt_cache_options: shape({ plain: "mode ttl prewarm", state: "comparison_response_id" }),
    stream_options: STREAM_OPTIONS,
    tool_choice: TOOL_CHOICE,
    tools: TOOL,
    web_search_options: shape({ plain: "search_context_size user_location" }),
  },
);

/**
 * vLLM, SGLang, llama.cpp, DeepSeek, Qwen, Kimi, GLM, Mistral, OpenRouter, Groq: members that only shape the answer.
 */
const SERVERS = shape(
  {
    plain: `
      top_k min_p top_a typical_p tfs_z repetition_penalty repeat_penalty repeat_last_n length_penalty
      no_repeat_ngram_size mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent xtc_probability
      xtc_threshold dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers samplers
      do_sample random_seed
      min_tokens ignore_eos stop_token_ids stop_regex include_stop_str_in_output no_stop_trim bad_words
      allowed_token_ids skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens truncation_side
      continue_final_message add_generation_prompt add_special_tokens
      guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern
      structured_outputs grammar json_schema regex ebnf
      include_reasoning reasoning_format reasoning_split separate_reasoning stream_reasoning enable_thinking
      thinking_budget thinking_token_budget thinking_budget_tokens reasoning_budget preserve_thinking
      cache_prompt cache_salt safe_prompt prompt_mode tool_stream incremental_output disable_tool_validation
      citation_options timings_per_token return_token_ids return_tokens_as_token_ids`,
  },
  {
    cache_control: CACHE_CONTROL,
    chat_template_kwargs: TEMPLATE_SWITCHES,
    reasoning: REASONING,
    thinking: shape({ plain: "type budget_tokens display clear_thinking keep reasoning_effort" }),
    usage: shape({ plain: "include" }),
  },
);

export const CHAT = joined(SHARED, joined(SERVERS, OFFICIAL));
