/**
 * The few splices that a request gets on a route of its own protocol, and what such a route refuses: an upstream's
 * memory belongs to whoever holds its credential, so no tenant may reach it (promise 14).
 */
import { type Refusal, refusal } from "../values/errors.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { spliceJson } from "../wire/json.ts";
import type { ClientRequest, Permitted, RouteFacts } from "./exchange.ts";
import { type JsonObject, objectOf } from "./json-object.ts";
import { withoutEnvelopes } from "./own-envelopes.ts";
import { offMember, refusedOff } from "./rules/thinking-off.ts";

/** The smallest thinking budget that the messages protocol takes (protocols.md 1.2.2). */
const THINKING_BUDGET_MIN = 1_024;

/** The upstream's body, or the refusal of a field that this route cannot be given. */
export function spliceRequest(request: ClientRequest, route: RouteFacts, permitted: Permitted): Uint8Array | Refusal {
  const refused = refusedState(request) ?? refusedSwitch(request, route);
  if (refused) return refused;
  const set: Record<string, string | Uint8Array> = {};
  if (route.upstreamModel !== request.model) set.model = JSON.stringify(route.upstreamModel);
  Object.assign(set, limitSplices(request, route, permitted), STORE_SPLICES[request.protocol](request, route));
  Object.assign(set, withoutEnvelopes(request));
  return Object.keys(set).length === 0 ? request.body : spliceJson(request.body, request.scan, { set });
}

/** The refusal of a request that refers to an upstream's memory, or undefined. */
export function refusedState(request: ClientRequest): Refusal | undefined {
  const stateField = firstStateField(request);
  if (stateField === undefined) return undefined;
  const detail = "It refers to state kept at the model's server, which is not available through this gateway.";
  return refusal("unsupported_parameter", { model: request.model, param: stateField, detail });
}

/** The refusal of switching thinking off where the route's model cannot and the operator wants that known. */
function refusedSwitch(request: ClientRequest, route: RouteFacts): Refusal | undefined {
  if (route.capabilities.thinkingOff === "ignore") return undefined;
  return refusedOff(offMember(request.protocol, request.json), route);
}

/**
 * The output limit where admission set one, in every member that the client wrote: an upstream may honour any of them.
 * One that is lower already stays. A thinking budget that would no longer fit is lowered with it.
 */
function limitSplices(request: ClientRequest, route: RouteFacts, permitted: Permitted): Record<string, string> {
  const limit = permitted.outputLimit;
  if (limit === undefined) return {};
  const { limitFields } = PROTOCOLS[request.protocol];
  const present = limitFields.filter((name) => typeof request.json[name] === "number");
  const fallback = request.protocol === "chat" ? route.capabilities.maxTokensField : (limitFields[0] as string);
  const set: Record<string, string> = {};
  for (const name of present) if ((request.json[name] as number) > limit) set[name] = String(limit);
  if (present.length === 0) set[fallback] = String(limit);
  const thinking = objectOf(request.json.thinking);
  const budget = thinking?.budget_tokens;
  if (
    request.protocol === "messages" &&
    set[limitFields[0] as string] !== undefined &&
    typeof budget === "number" &&
    budget >= limit
  ) {
    set.thinking = JSON.stringify(
      limit > THINKING_BUDGET_MIN ? { ...thinking, budget_tokens: limit - 1 } : { type: "disabled" },
    );
  }
  return set;
}

/** What each protocol's upstream is asked besides: to report usage, and to remember nothing. */
const STORE_SPLICES: Readonly<Record<Protocol, (request: ClientRequest, route: RouteFacts) => Record<string, string>>> =
  {
    chat(request, route) {
      const set: Record<string, string> = {};
      const options = objectOf(request.json.stream_options);
      if (request.stream && route.capabilities.streamUsage && options?.include_usage !== true) {
        set.stream_options = JSON.stringify({ ...options, include_usage: true });
      }
      if (request.json.store === true) set.store = "false";
      return set;
    },
    messages: () => ({}),
    responses(request): Record<string, string> {
      // Absent means true in this protocol.
      return request.json.store === false ? {} : { store: "false" };
    },
  };

/** Top-level members that name or make state at the upstream. */
const STATE_FIELDS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [],
  messages: ["container", "thread"],
  responses: ["previous_response_id", "conversation", "prompt"],
};

/** The path of the first member that refers to upstream-side state, or undefined. */
function firstStateField(request: ClientRequest): string | undefined {
  const { json, protocol } = request;
  for (const name of STATE_FIELDS[protocol]) if (json[name] !== undefined && json[name] !== null) return name;
  if (protocol === "responses" && json.background === true) return "background";
  const root = protocol === "responses" ? "input" : "messages";
  return firstStatePart(json[root], root) ?? firstStatePart(json.tools, "tools");
}

/**
 * Looks for file ids, stored items and containers in messages and tools, without recursion: the depth is the
 * client's (F8).
 */
function firstStatePart(root: unknown, rootPath: string): string | undefined {
  const stack: { value: unknown; path: string }[] = [{ value: root, path: rootPath }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, path } = next;
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--)
        stack.push({ value: value[index], path: `${path}[${index}]` });
      continue;
    }
    const part = objectOf(value);
    if (!part) continue;
    const found = stateMember(part) ?? (path.endsWith(".audio") && typeof part.id === "string" ? "id" : undefined);
    if (found !== undefined) return `${path}.${found}`;
    for (const name of NESTED) if (part[name] !== undefined) stack.push({ value: part[name], path: `${path}.${name}` });
  }
  return undefined;
}

/** Members inside which further parts stand; tool inputs and schemas are data and are not looked at. */
const NESTED = ["content", "output", "source", "file", "image_url", "audio"] as const;

function stateMember(part: JsonObject): string | undefined {
  if (typeof part.file_id === "string") return "file_id";
  if (part.type === "item_reference" || part.type === "container_upload") return "type";
  if (Array.isArray(part.vector_store_ids)) return "vector_store_ids";
  if (typeof part.container === "string") return "container";
  return undefined;
}
