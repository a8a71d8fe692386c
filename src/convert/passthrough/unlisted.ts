/**
 * Members that no protocol lists are left out of the upstream's body and named (ARCHITECTURE.md promise 14), because
 * nobody knows what they would buy or whose data they would reach. An upstream's configuration can allow them.
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import { type JsonObject, parseObject } from "../../values/json-object.ts";
import { inspectMembers, NONE_PASSED, pruneMembers } from "../../values/members.ts";
import type { ClientRequest, Permitted, RouteFacts } from "../exchange.ts";

/** What happens to a body's members on a route of its own protocol. */
interface Listed {
  /** Top-level members to remove. */
  readonly remove: readonly string[];
  /** Top-level members to change, with their new value as raw JSON. */
  readonly set: Readonly<Record<string, Uint8Array>>;
  /** The request as the following steps should see it. */
  readonly json: Readonly<JsonObject>;
  readonly dropped: readonly string[];
}

/** The members that an upstream does not get; a refusal if the request is strict. */
export function withoutUnlisted(
  request: ClientRequest,
  { passedMembers = NONE_PASSED }: Pick<RouteFacts, "passedMembers">,
  { strict }: Pick<Permitted, "strict">,
): Listed | Refusal {
  const { protocol, body, scan, json } = request;
  if (surplusOf(request).length === 0) return { remove: [], set: {}, json, dropped: [] };
  const { remove, set, dropped } = pruneMembers(protocol, body, scan, passedMembers);
  if (strict && dropped[0] !== undefined) return unlisted(dropped[0]);
  return { remove, set, json: without(json, remove, set), dropped };
}

function surplusOf({ surplus, protocol, body, scan }: ClientRequest): readonly string[] {
  return surplus ?? inspectMembers(protocol, body, scan).surplus;
}

/** The refusal of an unknown member in a strict request. */
function unlisted(param: string): Refusal {
  const detail = `"${param}" is unknown, and nothing may be left out.`;
  return refusal("unsupported_parameter", { param, detail });
}

function without(json: Readonly<JsonObject>, remove: readonly string[], set: Listed["set"]): Readonly<JsonObject> {
  const gone = new Set(remove);
  const left = Object.entries(json).filter(([name]) => !gone.has(name));
  // From entries, because an assignment to a client's `__proto__` would set the prototype. Parsed inside an object, so
  // that arrays work too.
  return Object.fromEntries(
    left.map(([name, value]) => {
      const raw = set[name];
      return [name, raw ? parseObject(`{"value":${Buffer.from(raw).toString()}}`)?.value : value];
    }),
  );
}
