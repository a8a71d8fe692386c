/**
 * Members that servers of several vendors read on more than one protocol, beyond the protocol's own documentation.
 * Sources are given where a name would surprise; docs/members.md has the tables with each member's meaning.
 */
import { shape } from "./shape.ts";

/** xAI's. Its `mode` decides whether the search is bought, so it must mean the same to every reader. */
const SEARCH_PARAMETERS = shape({
  plain: "mode sources return_citations max_search_results from_date to_date",
});

/** On every protocol: what costs extra by its own switch, or reaches beyond the request. */
export const SHARED = shape(
  {
    tier: "service_tier speed inference_geo",
    option: `
    models fallbacks route provider plugins transforms preset safety_model billing_policy fallback_credit_token
    best_of use_beam_search num_beams priority
    search_parameters enable_search search_options search_settings web_search web_search_options
    enable_code_interpreter compound_custom mcp_servers data_sources enhancements access_programs
    vl_high_resolution_images mm_processor_kwargs media_io_kwargs
    lora lora_path lora_request adapter_id adapter_source`,
    // llama.cpp's server lets n_predict override max_tokens on the chat path.
    limit: "n_predict num_predict max_new_tokens max_length max_gen_len max_decode_tokens max_tokens_to_sample",
    state: `
    previous_response_id conversation background background_options deferred container thread cached_content session_params
    id_slot slot_id kv_transfer_params ec_transfer_params`,
    envelope: `
    extra_body extra_query extra_headers headers options parameters provider_options model_kwargs litellm_params
    api_base api_key api_version base_url custom_llm_provider user_config mock_response model_list
    chat_template custom_logit_processor logits_processors vllm_xargs custom_params
    bootstrap_host bootstrap_port bootstrap_room data_parallel_rank routed_dp_rank`,
  },
  { search_parameters: SEARCH_PARAMETERS },
);

/** `cache_control`: a write for an hour costs more, and the upstream counts it separately. */
export const CACHE_CONTROL = shape({ plain: "type ttl scope" });

/**
 * Switches that servers of open models pass to the template of the conversation; any other name could change the
 * template.
 */
export const TEMPLATE_SWITCHES = shape({
  plain: "enable_thinking thinking thinking_budget reasoning_effort preserve_thinking clear_thinking thinking_mode",
});

export const STREAM_OPTIONS = shape({
  plain: `include_usage include_obfuscation continuous_usage_stats chunk_include_usage
    reasoning_summary_delivery`,
});

export const MODERATION = shape({ plain: "model policy" });

export const REASONING = shape({
  plain: "effort summary generate_summary context max_tokens exclude enabled",
  tier: "mode",
});
