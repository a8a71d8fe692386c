/**
 * The members that the decoder of responses requests reads; every other member is named (docs/translation-rules.md
 * rules 2, 3 and 31).
 */
import { byMember, type Inside, reads } from "../../rules/unread.ts";

/** A lifetime of 30 minutes is between the two of messages; the shorter one is used. */
const MARK = reads({ read: "mode", chat: "ttl", hint: "ttl", unsaid: { ttl: ["12h"] } });

/** Ids, statuses and callers are the server's own data; the caller `direct` has no meaning. */
const NOTES = "id status caller created_by";
const CALLER = { caller: [{ type: "direct" }] };

/**
 * Input parts; chat marks caches only in user messages. @param marks breakpoints, by the target that takes them there.
 */
function inputParts(marks: Partial<Record<"chat" | "messages", string>>): Inside {
  const marked = { ...marks, hint: "prompt_cache_breakpoint" };
  const inside = { prompt_cache_breakpoint: MARK };
  const text = reads({ read: "type text", ...marked }, inside);
  const chat = [marks.chat, "detail"].filter((one) => one).join(" ");
  const detail = { lost: "detail", unsaid: { detail: ["auto"] } };
  return byMember("type", {
    input_text: text,
    text,
    input_image: reads({ read: "type image_url file_id", ...marked, chat, ...detail }, inside),
    input_file: reads({ read: "type file_data file_url file_id filename", ...marked, ...detail }, inside),
  });
}

const USER_PART = inputParts({ chat: "prompt_cache_breakpoint", messages: "prompt_cache_breakpoint" });
const OTHER_PART = inputParts({ messages: "prompt_cache_breakpoint" });

const ASSISTANT_PART = byMember("type", {
  output_text: reads({ read: "type text", hint: "annotations logprobs parsed" }),
  input_text: reads({ read: "type text", hint: "prompt_cache_breakpoint" }),
  text: reads({ read: "type text" }),
  refusal: reads({ read: "type refusal" }),
});

// `phase` separates commentary from answers for models of its vendor; no other server has it.
const MESSAGE = { read: "type role", hint: "id status phase" };
const USER_MESSAGE = reads(MESSAGE, { content: USER_PART });
const SYSTEM_MESSAGE = reads(MESSAGE, { content: OTHER_PART });
const ASSISTANT_MESSAGE = reads(MESSAGE, { content: ASSISTANT_PART });

const OUTPUT = reads({ read: "type call_id", hint: `${NOTES} name`, unsaid: CALLER }, { output: OTHER_PART });
/** `parsed_arguments`, and `parsed` of a text: OpenAI's SDK adds what it has read of the arguments or the text. */
const CALL = reads({
  read: "type call_id name arguments input namespace",
  hint: `${NOTES} async parsed_arguments`,
  unsaid: CALLER,
});
const SEARCHES = reads({ read: "type call_id arguments execution", hint: NOTES, unsaid: CALLER });

const TOOL_FACTS = {
  hint: "defer_loading",
  lost: "async allowed_callers output_schema",
  unsaid: { allowed_callers: [["direct"]] },
};
const FUNCTION_TOOL = reads({ read: "type name description parameters strict", ...TOOL_FACTS });
const CUSTOM_TOOL = reads(
  { read: "type name description", ...TOOL_FACTS },
  { format: reads({ read: "type syntax definition" }) },
);
const TYPED_TOOL = reads(
  { read: "type description parameters execution", ...TOOL_FACTS },
  { environment: reads({ read: "type", lost: "skills" }) },
);
const TYPED = { local_shell: TYPED_TOOL, shell: TYPED_TOOL, apply_patch: TYPED_TOOL, tool_search: TYPED_TOOL };

/** Hosted tools have no table: they are left out and named as a whole. */
const TOOLS = byMember("type", {
  function: FUNCTION_TOOL,
  custom: CUSTOM_TOOL,
  ...TYPED,
  namespace: reads(
    { read: "type name description" },
    { tools: byMember("type", { function: FUNCTION_TOOL, custom: CUSTOM_TOOL, ...TYPED }) },
  ),
});

const ITEMS = {
  reasoning: reads({ read: "type summary content encrypted_content", hint: "id status" }),
  function_call: CALL,
  custom_tool_call: CALL,
  local_shell_call: reads(
    { read: "type call_id", hint: NOTES },
    { action: reads({ read: "type command env timeout_ms user working_directory" }) },
  ),
  shell_call: reads(
    { read: "type call_id", hint: `${NOTES} environment`, unsaid: { ...CALLER, environment: [{ type: "local" }] } },
    { action: reads({ read: "commands timeout_ms max_output_length" }) },
  ),
  apply_patch_call: reads(
    { read: "type call_id", hint: NOTES, unsaid: CALLER },
    { operation: reads({ read: "type path diff" }) },
  ),
  tool_search_call: SEARCHES,
  function_call_output: OUTPUT,
  custom_tool_call_output: OUTPUT,
  // The output of a local shell names the item of its call.
  local_shell_call_output: reads({ read: "type call_id id output", hint: "status" }),
  shell_call_output: reads({ read: "type call_id output", hint: `${NOTES} max_output_length`, unsaid: CALLER }),
  apply_patch_call_output: reads({ read: "type call_id output status", hint: "id caller created_by", unsaid: CALLER }),
  tool_search_output: reads({ read: "type call_id execution", hint: NOTES, unsaid: CALLER }, { tools: TOOLS }),
  additional_tools: reads({ read: "type role", hint: "id" }, { tools: TOOLS }),
  configuration_update: reads(
    { read: "type", hint: "id" },
    {
      reasoning: reads({ read: "effort", lost: "context mode summary" }),
      text: reads({ read: "format", lost: "verbosity" }),
    },
  ),
};

const ITEM = byMember("type", ITEMS);

export const RESPONSES_READS = reads(
  {
    read: `model instructions include max_output_tokens parallel_tool_calls tool_choice temperature top_p top_k
      top_logprobs store safety_identifier user service_tier prompt_cache_key prompt_cache_options prompt_cache_retention metadata
      moderation stream background background_options truncation context_management previous_response_id conversation prompt inference_geo`,
    hint: "stream_options max_tool_calls client_metadata access_programs image",
    refusals: "enable_thinking",
    unsaid: { speed: ["standard"] },
  },
  {
    input: (item) => {
      const { type, role } = item;
      if ((type ?? "message") === "message") {
        if (role === "assistant") return ASSISTANT_MESSAGE;
        return role === "user" ? USER_MESSAGE : SYSTEM_MESSAGE;
      }
      return typeof ITEM === "function" ? ITEM(item) : ITEM;
    },
    tools: TOOLS,
    text: reads({ read: "format verbosity" }),
    reasoning: reads({ read: "effort summary generate_summary mode", unsaid: { context: ["auto"] } }),
  },
);
