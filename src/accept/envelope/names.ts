/** Names of members that could mean one thing here and another at the model's server. */
import { type Refusal, refusal } from "../../values/errors.ts";
import { mistakenFor, shape } from "../../values/members/shape.ts";
import type { NameFault } from "../../values/members.ts";
import type { Met } from "./conversation.ts";

/** The refusal of a body for the name of a member. */
export function refusedName({ fault, path, known }: NameFault): Refusal {
  if (fault === "duplicate") {
    return refusal("duplicate_field", { param: path, detail: `"${path}" stands twice.` });
  }
  const detail =
    fault === "escaped"
      ? `"${known}" must be written as it is, without escapes.`
      : `Some servers read "${path}" as "${known}"; write it so, or leave it out.`;
  return refusal("unsupported_parameter", { param: path, detail });
}

/**
 * The names inside a conversation by which it is billed, or by which it could reach what belongs to others. All else
 * that stands there is the model's to read, and passes.
 */
const BILLING = shape({
  plain: `type content output source file file_id file_data file_url image_url url data input_audio audio audio_url
    video_url tools tool definition tool_changes execution environment container vector_store_ids output_config`,
});

/** Members that most messages and parts have; they are not looked at further. */
const USUAL: ReadonlySet<string> = new Set(
  `role text id name call_id tool_call_id tool_use_id tool_calls arguments input status cache_control is_error
  function_call refusal reasoning_content summary encrypted_content signature thinking namespace annotations logprobs
  phase index title context citations detail media_type filename format caller reasoning description parameters strict
  input_schema function custom reasoning_details`.split(/\s+/),
);

/** The refusal of a name in a conversation that some server would take for one that bills. */
export function mistakenPart({ node, under }: Met): Refusal | undefined {
  for (const name of Object.keys(node)) {
    if (USUAL.has(name)) continue;
    const known = mistakenFor(name, BILLING);
    if (known !== undefined) return refusedName({ fault: "mistaken", path: `${under}[].${name}`, known });
  }
  return undefined;
}
