/** Members of a responses request. */

import { joined, shape } from "./shape.ts";
import { MODERATION, REASONING, SHARED, STREAM_OPTIONS, TEMPLATE_SWITCHES } from "./shared.ts";

/** Members of all tools, run by the server or the client; only their type decides what they cost. */
const TOOL_NAMES = `
  type name description parameters strict defer_loading async allowed_callers output_schema format execution environment
  display_width display_height
  external_web_access filters search_context_size search_content_types user_location
  vector_store_ids max_num_results ranking_options container
  server_label server_description server_url connector_id authorization headers allowed_tools
  require_approval
  model action background complexity frame_count frame_duration_ms input_fidelity input_image_mask moderation
  output_compression output_format partial_images quality size svg`;

/** Gives access to a network of the owner of the credential. */
const TOOL_STATE = "tunnel_id";

/**
 * Where a tool runs, and what it is given there. Members that could reach stored data are listed as well, so that each
 * of them occurs once and without escapes. Their values are judged when the request is sent
 * (convert/passthrough/state.ts).
 */
const SKILLS = shape({ plain: "type name description path source skill_id version id" });
const PLACE = shape({ plain: "type id container_id file_ids memory_limit network_policy" }, { skills: SKILLS });
const PLACES = { container: PLACE, environment: PLACE, input_image_mask: shape({ plain: "file_id image_url" }) };

const TOOL = shape(
  { plain: TOOL_NAMES, state: TOOL_STATE },
  { ...PLACES, tools: shape({ plain: TOOL_NAMES, state: TOOL_STATE }, PLACES) },
);

/** Its `enabled` decides whether subagents run, so it must mean the same to every reader. */
const MULTI_AGENT = shape({ plain: "enabled max_concurrent_subagents" });

const OFFICIAL = shape(
  {
    plain: `
      input model instructions include max_output_tokens max_tool_calls metadata parallel_tool_calls personality
      prompt_cache_key prompt_cache_retention safety_identifier store stream temperature top_logprobs top_p truncation
      user client_metadata`,
    // Any number of subagents may run for one request.
    option: "n multi_agent",
    limit: "max_tokens max_completion_tokens",
    state: "prompt",
  },
  {
    context_management: shape({ plain: "type compact_threshold" }),
    image: shape({ plain: "context_compression" }),
    moderation: MODERATION,
    multi_agent: MULTI_AGENT,
    prompt_cache_options: shape({ plain: "mode ttl prewarm", state: "comparison_response_id" }),
    reasoning: REASONING,
    stream_options: STREAM_OPTIONS,
    text: shape({ plain: "format verbosity" }),
    tool_choice: shape({ plain: "type name mode server_label" }, { tools: shape({ plain: "type name server_label" }) }),
    tools: TOOL,
  },
);

/** Servers of open models that also offer this protocol. */
const SERVERS = shape(
  { plain: "top_k min_p repetition_penalty frequency_penalty presence_penalty seed stop enable_thinking cache_salt" },
  { chat_template_kwargs: TEMPLATE_SWITCHES },
);

export const RESPONSES = joined(SHARED, joined(SERVERS, OFFICIAL));
