/**
 * The members that the decoder of messages requests reads; every other member is named (docs/translation-rules.md rules
 * 2, 3 and 31).
 */
import { messagesTyped } from "../../rules/tool-typed.ts";
import { byMember, type Inside, reads } from "../../rules/unread.ts";

/**
 * `citations`: sources that the model cited in earlier turns. `cache_control`: breakpoints, which the other protocols
 * set themselves.
 */
const TEXT = reads({ read: "type text", hint: "cache_control citations" });

const IMAGE = reads(
  { read: "type source", hint: "cache_control" },
  // Servers scale images down anyway; the other value asks for a refusal.
  { transformations: reads({ lost: "oversized_image", unsaid: { oversized_image: ["downsize"] } }) },
);

const CITED = reads({ lost: "enabled" });

const DOCUMENT = reads(
  { read: "type title context", hint: "cache_control" },
  {
    source: byMember("type", {
      content: reads({ read: "type" }, { content: byMember("type", { text: TEXT, image: IMAGE }) }),
    }),
    citations: CITED,
  },
);

const SEARCH_RESULT = reads(
  { read: "type title source", hint: "cache_control" },
  { content: byMember("type", { text: TEXT }), citations: CITED },
);

const SHARED = { text: TEXT, image: IMAGE, document: DOCUMENT, search_result: SEARCH_RESULT };

const TOOL_RESULT = reads(
  { read: "type tool_use_id is_error", hint: "cache_control toolset_name" },
  {
    content: byMember("type", { ...SHARED, tool_reference: reads({ read: "type tool_name", hint: "cache_control" }) }),
  },
);

const USER = byMember("type", { ...SHARED, tool_result: TOOL_RESULT });

const ASSISTANT = byMember("type", {
  text: TEXT,
  thinking: reads({ read: "type thinking signature" }),
  redacted_thinking: reads({ read: "type data" }),
  tool_use: reads({
    read: "type id name input",
    hint: "cache_control caller toolset_name",
    unsaid: { caller: [{ type: "direct" }] },
  }),
  // Marks where another model of the vendor took over; its output is in the other blocks.
  fallback: reads({ hint: "type from to trigger" }),
});

const TOOL_NAMES = {
  hint: "cache_control defer_loading eager_input_streaming",
  lost: "input_examples allowed_callers max_characters",
  unsaid: { allowed_callers: [["direct"]], type: ["custom"] },
};
const OWN_TOOL = reads({ read: "type name description input_schema strict", ...TOOL_NAMES });
/** If the target does not know the type, the tool's schema is ours. */
const TYPED_TOOL = reads({ read: "type name", ...TOOL_NAMES, lost: `${TOOL_NAMES.lost} strict` });

/** Hosted tools have no table: they are left out and named as a whole. */
const TOOL: Inside = ({ type }) => {
  if (type === undefined || type === null || type === "custom") return OWN_TOOL;
  return typeof type === "string" && messagesTyped(type) ? TYPED_TOOL : undefined;
};

const TOOL_CHANGE = reads(
  { read: "type", hint: "cache_control" },
  { tool: reads({ read: "type name server_name" }, { definition: TOOL }) },
);

const SYSTEM = byMember("type", { text: TEXT, tool_addition: TOOL_CHANGE, tool_removal: TOOL_CHANGE });

const MESSAGE = byMember("role", {
  user: reads({ read: "role" }, { content: USER }),
  assistant: reads({ read: "role" }, { content: ASSISTANT }),
  system: reads({ read: "role clear_at" }, { content: SYSTEM, output_config: reads({ read: "effort" }) }),
});

export const MESSAGES_READS = reads(
  {
    read: `model max_tokens tool_choice temperature top_k top_p stop_sequences stream output_format metadata service_tier
      inference_geo container mcp_servers thread compaction context_management fallbacks safeguards speed`,
    hint: "diagnostics cache_control user_profile_id workspace_id anthropic_version anthropic_beta stream_options",
    refusals: "enable_thinking",
    unsaid: { speed: ["standard"] },
  },
  {
    system: TEXT,
    messages: MESSAGE,
    tools: TOOL,
    thinking: reads({
      read: "type budget_tokens",
      hint: "display block_binding",
      unsaid: { display: ["summarized", "omitted"] },
    }),
    output_config: reads({ read: "effort format", lost: "task_budget" }),
  },
);
