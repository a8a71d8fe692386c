/** Members of a messages request, including those of its beta versions. */

import { joined, shape } from "./shape.ts";
import { CACHE_CONTROL, SHARED, STREAM_OPTIONS, TEMPLATE_SWITCHES } from "./shared.ts";

/** Members of all tools: the client's own, typed tools that the client runs, and those that the server runs. */
const TOOL = shape(
  {
    plain: `
      type name description input_schema strict defer_loading eager_input_streaming input_examples allowed_callers
      display_width_px display_height_px display_number enable_zoom max_characters configs default_config
      mcp_server_name tools
      max_uses allowed_domains blocked_domains user_location citations max_content_tokens response_inclusion
      url_sources use_cache model max_tokens`,
  },
  { cache_control: CACHE_CONTROL, caching: CACHE_CONTROL },
);

const OFFICIAL = shape(
  {
    plain: `
      messages model max_tokens system metadata stop_sequences stream temperature top_k top_p output_format
      context_management safeguards anthropic_version anthropic_beta`,
    option: "n",
    limit: "max_completion_tokens max_output_tokens",
  },
  {
    cache_control: CACHE_CONTROL,
    compaction: shape({ plain: "type instructions" }),
    diagnostics: shape({ state: "previous_message_id" }),
    output_config: shape({ plain: "effort format task_budget" }),
    thinking: shape({ plain: "type budget_tokens display block_binding" }),
    tool_choice: shape({ plain: "type name disable_parallel_tool_use" }),
    tools: TOOL,
  },
);

/** Servers of open models that also offer this protocol. */
const SERVERS = shape(
  { plain: "min_p repetition_penalty seed reasoning_effort enable_thinking user" },
  { chat_template_kwargs: TEMPLATE_SWITCHES, stream_options: STREAM_OPTIONS },
);

export const MESSAGES = joined(SHARED, joined(SERVERS, OFFICIAL));
