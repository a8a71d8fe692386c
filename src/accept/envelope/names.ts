/** Names of members that could mean one thing here and another at the model's server. */
import { type Refusal, refusal } from "../../values/errors.ts";
import { ADDRESS_MEMBERS, HOLDERS } from "../../values/members/holders.ts";
import { mistakenFor, shape } from "../../values/members/shape.ts";
import { type NameFault, UNLISTED_MAX } from "../../values/members.ts";

/** The refusal of a body for the name of a member. */
export function refusedName({ fault, path, known }: NameFault): Refusal {
  if (fault === "duplicate") {
    return refusal("duplicate_field", { param: path, detail: `"${path}" stands twice.` });
  }
  if (fault === "many") {
    const detail = `The body has more than ${UNLISTED_MAX} members that are not listed.`;
    return refusal("body_too_large", { detail });
  }
  const detail =
    fault === "escaped"
      ? `"${known}" must be written as it is, without escapes.`
      : `Some servers read "${path}" as "${known}"; write it so, or leave it out.`;
  return refusal("unsupported_parameter", { param: path, detail });
}

/**
 * The names inside a conversation by which it is billed, or by which it could reach what belongs to others. Every other
 * name is data for the model, and passes.
 */
const BILLING = shape({
  plain: `${[...HOLDERS, ...ADDRESS_MEMBERS].join(" ")} type file_id url data execution container_id vector_store_ids file_ids
    skill_id memory_limit tunnel_id output_config id approval_request_id`,
});

/** Members that most messages and parts have; they are not looked at further. */
const USUAL: ReadonlySet<string> = new Set(
  `role text id name call_id tool_call_id tool_use_id tool_calls arguments input status cache_control is_error
  function_call refusal reasoning_content summary encrypted_content signature thinking namespace annotations logprobs
  phase index title context citations detail media_type filename format caller reasoning description parameters strict
  input_schema function custom reasoning_details`.split(/\s+/),
);

/** Looks at the names inside one body's conversation. */
export class ConversationNames {
  /** Names that no protocol has, each once: a conversation repeats the few that it has, and many are nobody's. */
  readonly #others = new Set<string>();

  /**
   * Why a name must be refused: a server could take it for one that bills, or it holds a backslash, or there are very many that no protocol
   * has, each of which is folded. None of the conversation's holds a backslash, and V8's JSON.parse can give such a name in the place of
   * another one that was written with escapes (nodejs/node#63785), so that `type` would be hidden from us and from nobody else.
   * @param under the member that holds the object.
   */
  refused(name: string, under: string): Refusal | undefined {
    if (USUAL.has(name) || BILLING.standings.has(name) || this.#others.has(name)) return undefined;
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
