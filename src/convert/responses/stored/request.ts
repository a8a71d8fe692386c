/** Wrapped ids in a request: what they name, and their replacement by the server's own ids. */
import { isRefusal, type Refusal, refusal } from "../../../values/errors.ts";
import { arrayOf, type JsonObject, objectOf } from "../../../values/json-object.ts";
import type { StoredName, StoredNames } from "../../../values/members/stored.ts";
import { elementSpans, findNested, mayHoldText, spliceNested } from "../../../wire/json.ts";
import type { ClientRequest, ConvertContext, RouteFacts } from "../../exchange.ts";
import { isReference } from "../references/opening.ts";
import { mayBeReferredTo } from "../references/sealing.ts";
import {
  CONTAINER_ID,
  type ContainerPlace,
  containerIdsOf,
  containersIn,
  ENVIRONMENT,
  withContainers,
} from "./containers.ts";
import { isWrapped, openStored, WRAPPED_MARK } from "./stored.ts";

/** Whether a request may have wrapped ids; false for nearly all. */
export function mayNameStored(body: Uint8Array): boolean {
  return mayHoldText(body, WRAPPED_MARK);
}

/**
 * Opens the wrapped ids of a request, each once.
 * @param rest called between items; the returned promise is awaited.
 * @returns undefined if it has none.
 */
export async function storedNamesOf(
  json: Readonly<JsonObject>,
  context: Pick<ConvertContext, "open">,
  rest: () => Promise<void> | undefined = () => undefined,
): Promise<StoredNames | undefined> {
  const names = new Map<string, StoredName | undefined>();
  let needed: StoredName | undefined;
  let ranAt: StoredName | undefined;
  const see = (id: unknown, isNeeded: boolean): StoredName | undefined => {
    if (!isWrapped(id)) return undefined;
    if (!names.has(id)) names.set(id, openStored(id, context));
    const name = names.get(id);
    if (isNeeded) needed ??= name;
    return name;
  };
  see(json.previous_response_id, true);
  for (const one of arrayOf(json.input)) {
    const item = objectOf(one);
    if (!item) continue;
    see(item.id, !isWhole(item));
    see(item.approval_request_id, true);
    for (const id of containerIdsOf(item)) ranAt = see(id, false) ?? ranAt;
    await rest();
  }
  return names.size === 0 ? undefined : { names, needed, ranAt: ranAt?.upstream };
}

/** Whether an item contains everything about it; of other items, a server reads more by their id. */
function isWhole(item: JsonObject): boolean {
  if (isReference(item)) return false;
  const { type } = item;
  if (type === "reasoning") return typeof item.encrypted_content === "string";
  if (type === undefined || type === "message" || type === "function_call" || type === "custom_tool_call") return true;
  return typeof type === "string" && type.endsWith("_output");
}

/** Reasoning without content, which its server would have to look up by its id. */
function isBareReasoning(item: JsonObject): boolean {
  return item.type === "reasoning" && !isWhole(item) && arrayOf(item.content).length === 0;
}

/** The facts about a route that wrapped ids need. */
export type StoredRoute = Pick<RouteFacts, "upstream" | "stateful">;

/** The server's own id for a wrapped one, if this route's server keeps what it names. */
export function ownId(id: unknown, { stored }: ClientRequest, route: StoredRoute): string | undefined {
  const name = typeof id === "string" ? stored?.names.get(id) : undefined;
  return name && route.stateful && name.upstream === route.upstream ? name.id : undefined;
}

/** The changes to a request for a route. */
interface StoredSplices {
  readonly set: Readonly<Record<string, string>>;
  /** Edits the items of `input`; undefined: they stay. */
  readonly ofItem: ((raw: Uint8Array, index: number) => Uint8Array | undefined) | undefined;
  /** Whether something was left out because it ran in a container of another server. */
  readonly leavesContainers: boolean;
}

const NO_SPLICES: StoredSplices = { set: {}, ofItem: undefined, leavesContainers: false };

/**
 * The changes to a request for a route. On a stateful route, wrapped ids become the server's own, and all other ids are
 * removed, because a server looks up every id that it gets. On other routes, wrapped ids are removed. On every route,
 * container ids become the server's own; no others are sent.
 * @returns a refusal if the request refers to something that this route's server does not keep, or to a container that
 * this account was not given.
 */
export function storedSplices(request: ClientRequest, route: StoredRoute): StoredSplices | Refusal {
  if (request.protocol !== "responses") return NO_SPLICES;
  const mayName = mayHoldText(request.body, CONTAINER_ID);
  if (!mayName && !request.stored && !route.stateful && !mayBeReferredTo(request.json)) return NO_SPLICES;
  const own = ownId(request.json.previous_response_id, request, route);
  const set: Record<string, string> = own === undefined ? {} : { previous_response_id: JSON.stringify(own) };
  const raws = mayName ? rawItems(request.body) : [];
  const edits = arrayOf(request.json.input).map((one, index) => {
    const item = objectOf(one);
    return item && editOf(item, raws[index], index, request, route);
  });
  const refused = edits.find(isRefusal);
  if (refused) return refused;
  if (edits.every((edit) => edit === undefined)) return { ...NO_SPLICES, set };
  const leavesContainers = edits.some((edit) => typeof edit === "object" && "leaves" in edit && edit.leaves);
  return { set, ofItem: (raw, index) => applied(edits[index], raw), leavesContainers };
}

function rawItems(body: Uint8Array): readonly Uint8Array[] {
  const span = findNested(body, ["input"]);
  const input = span ? body.subarray(span.start, span.end) : new Uint8Array();
  return Array.from(elementSpans(input), ({ start, end }) => input.subarray(start, end));
}

function applied(edit: Edit, raw: Uint8Array): Uint8Array | undefined {
  if (edit === undefined || isRefusal(edit)) return raw;
  if (edit.whole) return undefined;
  let bytes = edit.containers ? withContainers(raw, edit.containers.places, edit.containers.own) : raw;
  for (const [name, value] of Object.entries(edit.members)) {
    bytes = spliceNested(bytes, [name], value === undefined ? undefined : JSON.stringify(value));
  }
  return bytes;
}

/** The changes to an item. */
interface ItemEdit {
  /** Ids by member; undefined: the member is removed. */
  readonly members: Readonly<Record<string, string | undefined>>;
  readonly containers?: OwnContainers | undefined;
  /** Whether the whole item is left out. */
  readonly whole?: boolean;
  /** Whether what is left out ran in a container of another server. */
  readonly leaves?: boolean;
}

type Edit = ItemEdit | Refusal | undefined;

function editOf(
  item: JsonObject,
  raw: Uint8Array | undefined,
  index: number,
  request: ClientRequest,
  route: StoredRoute,
): Edit {
  const ran = raw && containersOf(raw, index, request, route);
  if (isRefusal(ran)) return ran;
  if (ran === "elsewhere") return { members: {}, whole: true, leaves: true };
  const { id, approval_request_id: approval } = item;
  for (const [name, value] of route.stateful ? Object.entries({ id, approval_request_id: approval }) : []) {
    if (typeof value === "string" || value === undefined || value === null) continue;
    return refusal("wrong_type", {
      model: request.model,
      param: `input[${index}].${name}`,
      detail: "An id must be a string.",
    });
  }
  const members: Record<string, string | undefined> = {};
  if (typeof approval === "string" && (route.stateful || isWrapped(approval))) {
    const own = ownId(approval, request, route);
    if (own === undefined) return notKept(request, approval, `input[${index}].approval_request_id`);
    members.approval_request_id = own;
  }
  if (typeof id === "string" && (route.stateful || isWrapped(id))) {
    const own = ownId(id, request, route);
    if (own === undefined && isReference(item)) return notKept(request, id, `input[${index}].id`);
    members.id = own;
  }
  // A client that assumes its replies are stored sends reasoning back by id alone, which means nothing if it is not
  // stored.
  const isNamed = typeof id === "string" && members.id === undefined;
  const isDoubted = route.stateful || isWrapped(id) || mayBeReferredTo(request.json);
  if (isNamed && isDoubted && isBareReasoning(item)) return { members, whole: true };
  // The commands stay the same wherever they ran.
  if (ran === "environment elsewhere") return { members: { ...members, [ENVIRONMENT]: undefined }, leaves: true };
  return Object.keys(members).length === 0 && !ran ? undefined : { members, containers: ran };
}

/** Containers that this route's server has run for this account. */
interface OwnContainers {
  readonly places: readonly ContainerPlace[];
  readonly own: (id: unknown) => string | undefined;
}

/**
 * The containers of an item: if they belong to the route's server, its own ids replace the wrapped ones. No other
 * server knows them.
 * @returns undefined if it has none.
 */
function containersOf(
  raw: Uint8Array,
  index: number,
  request: ClientRequest,
  { upstream }: StoredRoute,
): OwnContainers | "elsewhere" | "environment elsewhere" | Refusal | undefined {
  const places = containersIn(raw);
  if (places.length === 0) return undefined;
  const nameOf = (id: unknown) => (typeof id === "string" ? request.stored?.names.get(id) : undefined);
  const unknown = places.find(({ id }) => nameOf(id) === undefined);
  if (unknown) return notKept(request, unknown.id, `input[${index}].${unknown.path}`, "leave the item out");
  const elsewhere = places.filter(({ id }) => nameOf(id)?.upstream !== upstream);
  if (elsewhere.some(({ path }) => path === CONTAINER_ID)) return "elsewhere";
  if (elsewhere.length > 0) return "environment elsewhere";
  return { places, own: (id) => nameOf(id)?.id };
}

/**
 * The refusal of an id that this route's server does not keep for this account; the same whatever the reason.
 * @param otherwise what else the client can do.
 */
export function notKept(
  { model, stored }: ClientRequest,
  id: unknown,
  param: string,
  otherwise = "send the conversation itself",
): Refusal {
  const name = typeof id === "string" ? stored?.names.get(id) : undefined;
  const detail = name
    ? "It is kept by a server that does not serve this model, or no longer does."
    : "Nothing of this id is kept for this account.";
  const remedy = name
    ? `Use the model that it came from ("${name.model}"), or ${otherwise}.`
    : `Send the id exactly as this account received it, or ${otherwise}.`;
  return refusal("unsupported_parameter", { model, param, detail, remedy });
}
