/** Member names that could mean one thing here and another to the model's server. */
import { type Refusal, refusal } from "../../values/errors.ts";
import { ADDRESS_MEMBERS, HOLDERS } from "../../values/members/holders.ts";
import { mistakenFor, shape } from "../../values/members/shape.ts";
import { type NameFault, UNLISTED_MAX } from "../../values/members.ts";

/** The refusal of a body because of a member's name. */
export function refusedName({ fault, path, known }: NameFault): Refusal {
  if (fault === "duplicate") {
    return refusal("duplicate_field", { param: path, detail: `"${path}" appears twice.` });
  }
  if (fault === "many") {
    const detail = `The body has more than ${UNLISTED_MAX} members that are not listed.`;
    return refusal("body_too_large", { detail });
  }
  const detail =
    fault === "escaped"
      ? `"${known}" must be written as it is, without escapes.`
      : `Some servers read "${path}" as "${known}". Use "${known}", or remove it.`;
  return refusal("unsupported_parameter", { param: path, detail });
}

/**
 * Names inside a conversation that affect the bill or could reach the data of others. Every other name is data for the
 * model and passes.
 */
const BILLING = shape({
  plain: `${[...HOLDERS, ...ADDRESS_MEMBERS].join(" ")} type file_id url data execution container_id vector_store_ids file_ids
    skill_id memory_limit tunnel_id output_config id approval_request_id min_pixels
    resized_height resized_width reasoning`,
});

/** Members that most messages and parts have; they need no further check. */
const USUAL: ReadonlySet<string> = new Set(
  `role text id name call_id tool_call_id tool_use_id tool_calls arguments input status cache_control is_error
  function_call refusal reasoning_content summary encrypted_content signature thinking namespace annotations logprobs
  phase index title context citations detail media_type filename format caller reasoning description parameters strict
  input_schema function custom reasoning_details`.split(/\s+/),
);

/** Checks the names inside one body's conversation. */
export class ConversationNames {
  /**
   * Names that no protocol has, each once. A conversation repeats the few that it has; many distinct ones are not
   * normal.
   */
  readonly #others = new Set<string>();

  /**
   * Why a name must be refused, if it must:
   *
   * - A server could mistake it for one that affects the bill.
   * - There are very many names that no protocol has; each of them costs a comparison.
   * - It holds a backslash; no name of a conversation does. V8's JSON.parse can return such a name in place of another
   *   one that was written with escapes (nodejs/node#63785). This would hide `type` from us, but not from the model's
   *   server.
   *
   * @param under the member that holds the object.
   */
  refused(name: string, under: string): Refusal | undefined {
    if (USUAL.has(name) || BILLING.meanings.has(name) || this.#others.has(name)) return undefined;
    const path = `${under}[].${name}`;
    if (name.includes("\\")) {
      return refusal("unsupported_parameter", { param: path, detail: "A name here must not hold a backslash." });
    }
    this.#others.add(name);
    if (this.#others.size > UNLISTED_MAX) return refusedName({ fault: "many", path, known: name });
    const known = mistakenFor(name, BILLING);
    return known === undefined ? undefined : refusedName({ fault: "mistaken", path, known });
  }
}
