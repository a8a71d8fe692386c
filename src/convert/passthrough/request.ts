/**
 * The few splices of a request on a route of its own protocol, and what such a route refuses. An upstream's memory
 * belongs to the holder of its credential, so no tenant may reach it (ARCHITECTURE.md promise 14).
 */
import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import { loweredBudgets } from "../../values/members/thinking-budget.ts";
import { tierOf } from "../../values/members/tier.ts";
import { MEMBERS, type Shape } from "../../values/members.ts";
import { PROTOCOLS, type Protocol } from "../../values/protocol.ts";
import { spliceJson } from "../../wire/json.ts";
import type { ClientRequest, ConvertContext, EncodedRequest, Permitted, RouteFacts } from "../exchange.ts";
import { isReference, lostReferences } from "../responses/references/opening.ts";
import { mayBeReferredTo } from "../responses/references/sealing.ts";
import { CONTAINER_ID } from "../responses/stored/containers.ts";
import { notKept, ownId, type StoredRoute, storedSplices } from "../responses/stored/request.ts";
import { isWrapped } from "../responses/stored/stored.ts";
import { BUDGET_TOKENS_MIN, offMember, refusedOff } from "../rules/thinking.ts";
import { withoutUnpriced } from "./hosted-tools.ts";
import { refusedKeptTool } from "./kept-tools.ts";
import { withoutMadeFiles } from "./made-files.ts";
import { withoutEnvelopes } from "./own-envelopes.ts";
import { firstAmbiguousName, firstStatePlace, MEMORY_LIMIT, MEMORY_USUAL, type RefusedPlace } from "./state.ts";
import { thinkingOff } from "./thinking-off.ts";
import { withoutUnlisted } from "./unlisted.ts";

/** Raw JSON by top-level member. The steps below add to it; most requests get hardly any. */
type Splices = Record<string, string | Uint8Array>;

/** The upstream's body and what was left out of it, or the refusal of a member that this route cannot take. */
export function spliceRequest(
  asked: ClientRequest,
  route: RouteFacts,
  permitted: Permitted,
  context: ConvertContext,
): EncodedRequest | Refusal {
  const offered = withoutUnpriced(asked, permitted);
  if (isRefusal(offered)) return offered;
  // A strict request keeps its files, so that refusedState names the first one.
  const made = permitted.strict ? { ...offered, dropped: [] } : withoutMadeFiles(offered.request);
  const { request } = made;
  const refused = refusedState(request, route) ?? refusedKeptTool(request, route) ?? refusedSwitch(request, route);
  if (refused) return refused;
  const listed = withoutUnlisted(request, route, permitted);
  if (isRefusal(listed)) return listed;
  const lost = lostReferences(request, permitted);
  if (isRefusal(lost)) return lost;
  const { json, dropped } = listed;
  const set: Splices = { ...listed.set };
  const remove = [...listed.remove];
  if (route.upstreamModel !== request.model) set.model = JSON.stringify(route.upstreamModel);
  const left = json === request.json ? request : { ...request, json };
  addLimit(set, remove, left, route, permitted);
  addBudgets(set, left, permitted);
  ADD_STORE[request.protocol](set, left, route);
  const named = storedSplices(request, route);
  if (isRefusal(named)) return named;
  const elsewhere = refusedContainers(named, permitted);
  if (elsewhere) return elsewhere;
  const opened = withoutEnvelopes(request, json, { route, context }, named.ofItem);
  if (isRefusal(opened)) return opened;
  if (permitted.strict && opened.dropped.length > 0) return LOST_THINKING;
  if (request.protocol !== "chat") Object.assign(set, named.set, opened.set);
  remove.push(...opened.remove);
  const isUntouched = remove.length === 0 && Object.keys(set).length === 0;
  const body = isUntouched ? request.body : spliceJson(request.body, request.scan, { set, remove });
  const more = [
    ...lost,
    ...(named.leavesContainers ? [LEFT_CONTAINER] : []),
    ...offered.dropped,
    ...made.dropped,
    ...opened.dropped,
  ];
  return {
    body,
    dropped: more.length === 0 ? dropped : [...more, ...dropped],
    unlisted: dropped.length,
    tier: tierOf(json)?.name,
  };
}

/** The refusal of a strict request with a thinking budget whose tool loop has lost its reasoning. */
const LOST_THINKING = refusal("unsupported_parameter", {
  param: "thinking",
  detail:
    "The running tool loop has reasoning of another model's server, which this server cannot read, and nothing may be left out.",
});

/** The name of the loss if an item ran in a container of another server. */
const LEFT_CONTAINER = `input.${CONTAINER_ID}`;

/** The refusal of a strict request with an item that ran in a container of another server. */
function refusedContainers(
  { leavesContainers }: { readonly leavesContainers: boolean },
  { strict }: Pick<Permitted, "strict">,
): Refusal | undefined {
  if (!strict || !leavesContainers) return undefined;
  const detail = "An item ran in a container of a server other than this model's, and nothing may be left out.";
  return refusal("unsupported_parameter", { param: LEFT_CONTAINER, detail });
}

/** The refusal of a request that refers to an upstream's memory; undefined: none. */
export function refusedState(request: ClientRequest, route?: StoredRoute): Refusal | undefined {
  return (
    refusedForm(request, route) ?? refusedStateMember(request, route) ?? refusedPlace(request, firstStatePlace(request))
  );
}

/** The refusal of structures that servers could read differently than the checks here. */
function refusedForm(request: ClientRequest, route: StoredRoute | undefined): Refusal | undefined {
  const { protocol, model, json } = request;
  if (protocol === "responses") {
    const list = arrayOf(json.input).findIndex(Array.isArray);
    if (list >= 0)
      return refusal("wrong_type", { model, param: `input[${list}]`, detail: "An item must be an object." });
    const { instructions } = json;
    if (typeof instructions === "object" && instructions !== null) {
      return refusal("wrong_type", { model, param: "instructions", detail: "Instructions must be a string." });
    }
  }
  const doubted = firstAmbiguousName(request, route?.stateful === true);
  if (doubted === undefined) return undefined;
  const detail = `"${doubted}" occurs twice in one object, or is written with escapes.`;
  return refusal("duplicate_field", { model, param: doubted, detail });
}

/** The refusal of a reference that has not been replaced by its item: it cannot be opened for this account. */
function refusedReference(request: ClientRequest, route: StoredRoute | undefined): Refusal | undefined {
  const { protocol, model, json } = request;
  if (protocol !== "responses") return undefined;
  const items = arrayOf(json.input);
  const index = items.findIndex((one) => {
    const item = objectOf(one) ?? {};
    return isReference(item) && !(route && ownId(item.id, request, route));
  });
  if (index < 0) return undefined;
  const item = objectOf(items[index]);
  if (isWrapped(item?.id)) return notKept(request, item?.id, `input[${index}].id`);
  const param = `input[${index}].${item?.type === undefined ? "id" : "type"}`;
  const detail = "It refers to an item that cannot be opened here; this gateway keeps none.";
  const remedy = "Send the item itself instead of the reference, as clients with store: false do.";
  return refusal("unsupported_parameter", { model, param, detail, remedy });
}

/** The refusal of a member or an item that refers to something that should have been kept; undefined: none. */
export function refusedStateMember(request: ClientRequest, route?: StoredRoute): Refusal | undefined {
  const previous = request.json.previous_response_id;
  const isKept = route !== undefined && ownId(previous, request, route) !== undefined;
  const others = isKept ? { ...request.json, previous_response_id: undefined } : request.json;
  const member = firstStateMember(others, MEMBERS[request.protocol]);
  const mayBeKept = route?.stateful === true || isWrapped(previous);
  if (member === "previous_response_id" && mayBeKept) return notKept(request, previous, member);
  return refuseState(request, member) ?? refusedReference(request, route);
}

/** What the client can do instead of referring to an earlier response, by the name of the member. */
const STATE_REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    "previous_response_id",
    "Leave it out and send the whole conversation with each request, as clients with store: false do. An operator can allow it with stateful: true at an upstream of the responses protocol.",
  ],
  ["conversation", "Leave it out and send the whole conversation with each request."],
  ["background", "Leave it out, and set stream: true for long replies."],
  ["background_options", "Leave it out; no response is created in the background here."],
  [
    "thread",
    "Leave it out and send the whole conversation with each request, as the tool runner of Anthropic's SDK does with thread: false.",
  ],
]);

/** On this code Anthropic's tool runner, which begins every run with a thread, goes on without one. */
const NO_THREADS = { error_code: "thread_unsupported_request" };

/** The refusal of a part or tool that no server may get. */
function refusedPlace(request: ClientRequest, place: RefusedPlace | undefined): Refusal | undefined {
  if (!place?.isToolName) return refuseState(request, place?.path);
  // A name alone could be one of the server's own tools, which has no price here.
  const { model } = request;
  return refusal("wrong_type", { model, param: place.path, detail: "A tool must be an object." });
}

function refuseState({ model }: ClientRequest, param: string | undefined): Refusal | undefined {
  if (param === undefined) return undefined;
  if (param.endsWith(MEMORY_LIMIT)) {
    const detail = `The cost of a container depends on it; the price here is for "${MEMORY_USUAL}".`;
    return refusal("unsupported_parameter", {
      model,
      param,
      detail,
      remedy: `Leave it out, or send "${MEMORY_USUAL}".`,
    });
  }
  const detail = "It refers to state kept at the model's server, which is not available through this gateway.";
  const facts = { model, param, detail, remedy: STATE_REMEDIES.get(param) };
  return refusal("unsupported_parameter", facts, { details: param === "thread" ? NO_THREADS : undefined });
}

/** The refusal of switching thinking off, if the route's model cannot and the operator configured refusal. */
function refusedSwitch(request: ClientRequest, route: RouteFacts): Refusal | undefined {
  if (route.capabilities.thinkingOff === "ignore") return undefined;
  return refusedOff(offMember(request.protocol, request.json), route);
}

/**
 * Writes the output limit of admission into every limit member that the client wrote, because an upstream may use any
 * of them. A lower value stays. A thinking budget that would no longer fit is lowered too, or thinking is switched off.
 */
function addLimit(
  set: Splices,
  remove: string[],
  request: ClientRequest,
  route: RouteFacts,
  permitted: Permitted,
): void {
  const limit = permitted.outputLimit;
  if (limit === undefined) return;
  const { limitFields } = PROTOCOLS[request.protocol];
  const present = limitFields.filter((name) => typeof request.json[name] === "number");
  const fallback = request.protocol === "chat" ? route.capabilities.maxTokensField : (limitFields[0] as string);
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
    if (limit > BUDGET_TOKENS_MIN) {
      set.thinking = JSON.stringify({ ...thinking, budget_tokens: limit - 1 });
      return;
    }
    const off = thinkingOff(request.json);
    Object.assign(set, off.set);
    remove.push(...off.remove);
  }
}

/**
 * Lowers thinking budgets to what is held for them. On messages servers the budget must stay below the limit, so
 * `addLimit` lowers it.
 */
function addBudgets(set: Splices, { protocol, json }: ClientRequest, { thinkingMost }: Permitted): void {
  if (protocol === "messages" || thinkingMost === undefined) return;
  const lowered = loweredBudgets(json, thinkingMost);
  if (lowered) Object.assign(set, lowered);
}

function asksForReasoning(json: Readonly<JsonObject>, { capabilities }: RouteFacts): boolean {
  const asked = objectOf(json.reasoning);
  return asked !== undefined && asked.effort !== "none" && capabilities.efforts.length > 0;
}

const ENCRYPTED_REASONING = "reasoning.encrypted_content";

/** What each protocol's upstream is asked in addition: to report usage, and to store nothing. */
const ADD_STORE: Readonly<Record<Protocol, (set: Splices, request: ClientRequest, route: RouteFacts) => void>> = {
  chat(set, request, route) {
    const options = objectOf(request.json.stream_options);
    if (request.stream && route.capabilities.streamUsage && options?.include_usage !== true) {
      set.stream_options = JSON.stringify({ ...options, include_usage: true });
    }
    const { store } = request.json;
    // Some server could read any other value as true.
    if (store !== undefined && store !== null && store !== false) set.store = "false";
  },
  messages() {},
  responses(set, request, route) {
    if (route.stateful || !mayBeReferredTo(request.json)) return;
    set.store = "false";
    const include = arrayOf(request.json.include);
    // What is not stored there must be complete here, so that it can be sent in place of a reference. Models without
    // reasoning refuse this `include`, so it is sent only if the client asked for reasoning.
    if (!asksForReasoning(request.json, route) || include.includes(ENCRYPTED_REASONING)) return;
    set.include = JSON.stringify([...include, ENCRYPTED_REASONING]);
  },
};

/**
 * The first member that refers to or creates state at the upstream, at the top or in the members that the protocol
 * lists below it.
 */
function firstStateMember(json: Readonly<JsonObject>, shape: Shape): string | undefined {
  for (const name of Object.keys(json)) {
    const value = json[name];
    // `false` means that nothing is to be stored.
    if (value === null || value === undefined || value === false) continue;
    if (shape.meanings.get(name) === "state") return name;
    if (typeof value !== "object") continue;
    const inner = shape.inside.get(name);
    if (!inner) continue;
    // A server may accept a list in place of its elements.
    const [all, places] = Array.isArray(value)
      ? [value, value.map((_, index) => `${name}[${index}]`)]
      : [[value], [name]];
    for (const [index, one] of all.entries()) {
      const object = objectOf(one);
      const found = object && firstStateMember(object, inner);
      if (found !== undefined) return `${places[index]}.${found}`;
    }
  }
  return undefined;
}
