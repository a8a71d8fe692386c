/**
 * Replaces references in a request by the items they name: opens the ids that sealing.ts has made, for the account that
 * they were made for.
 */
import { inflateRawSync } from "node:zlib";
import { type Refusal, refusal } from "../../../values/errors.ts";
import { type JsonObject, objectOf, parseObject } from "../../../values/json-object.ts";
import { elementSpans, findNested, mayHoldText, spliceNested } from "../../../wire/json.ts";
import type { ClientRequest, ConvertContext, Permitted } from "../../exchange.ts";
import { isWrapped } from "../stored/stored.ts";
import { BINDING, DICTIONARY, KEPT_BYTES_MAX, REPLY_ID_CHARS_MAX, SEALED, SEALED_MARK, VERSION } from "./form.ts";

/** The content of a sealed id. */
type Held = { readonly item: JsonObject } | { readonly items: readonly JsonObject[] };

/** Opens ids, each only once. */
class OpenedIds {
  readonly #context: Pick<ConvertContext, "open">;
  readonly #held = new Map<string, Held | undefined>();
  /** Bytes of JSON opened so far. */
  #bytes = 0;

  constructor(context: Pick<ConvertContext, "open">) {
    this.#context = context;
  }

  /** Opens an id. @returns false if more than `bytesMax` would be open in total; the id is then not opened. */
  tryOpen(id: string, bytesMax: number): boolean {
    if (this.#held.has(id)) return true;
    const held = this.#opened(id, bytesMax);
    if (held === "too_large") return false;
    this.#held.set(id, held);
    return true;
  }

  /** The content of an id that has been opened. */
  get(id: string): Held | undefined {
    return this.#held.get(id);
  }

  #opened(id: string, bytesMax: number): Held | undefined | "too_large" {
    const envelope = id.length <= REPLY_ID_CHARS_MAX + 32 ? SEALED.exec(id)?.[1] : undefined;
    const packed = envelope === undefined ? undefined : this.#context.open(envelope, BINDING);
    if (packed?.[0] !== VERSION) return undefined;
    const plain = inflated(packed.subarray(1), bytesMax - this.#bytes);
    if (plain === undefined || plain === "too_large") return plain;
    this.#bytes += plain.length;
    const value = parseObject(`{"value":${plain.toString()}}`)?.value;
    if (Array.isArray(value)) return { items: value.map(objectOf).filter((one) => one !== undefined) };
    const item = objectOf(value);
    return item && { item };
  }
}

/** @returns `too_large` if it has more bytes than `room`; undefined if it is not the content of one of our ids. */
function inflated(packed: Uint8Array, room: number): Buffer | undefined | "too_large" {
  if (room < 1) return "too_large";
  try {
    return inflateRawSync(packed, { dictionary: DICTIONARY, maxOutputLength: Math.min(room, KEPT_BYTES_MAX) });
  } catch (error) {
    const isLong = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
    return isLong && room < KEPT_BYTES_MAX ? "too_large" : undefined;
  }
}

/** Called between ids; the returned promise is awaited, so that many ids do not block the event loop. */
type Rest = () => Promise<void> | undefined;

/** Whether a request may contain references or ids to open; false for nearly all. */
export function mayRefer(body: Uint8Array): boolean {
  return mayHoldText(body, SEALED_MARK) || mayHoldText(body, "item_reference");
}

/** How many bytes of JSON a request may open and insert. */
interface OpeningBounds {
  readonly bytesMax: number;
  /** A lower limit for a key that has not been looked up yet. The gate is asked once before it is exceeded. */
  readonly unproven?: { readonly bytesMax: number; readonly gate: () => Promise<Refusal | undefined> } | undefined;
}

/**
 * The request with its references replaced by the items, and with the short ids of items that came back whole.
 * @param request its body, and the same parsed; bytes outside of `input` do not change.
 * @param context opens what was sealed for this account; other ids stay, and the route refuses them.
 * @returns the request's body, and whether references were left out; `too_large` if more is referred to than may be
 * opened; or the gate's refusal.
 */
export async function withItemsInPlace(
  { body, json }: { readonly body: Uint8Array; readonly json: Readonly<JsonObject> },
  context: Pick<ConvertContext, "open">,
  bounds: OpeningBounds,
  rest: Rest = () => undefined,
): Promise<{ readonly body: Uint8Array; readonly lost: boolean } | "too_large" | Refusal> {
  const unchanged = { body, lost: false };
  if (!Array.isArray(json.input)) return unchanged;
  const input = json.input.map(objectOf);
  let { unproven } = bounds;
  const allowed = () => Math.min(bounds.bytesMax, unproven?.bytesMax ?? bounds.bytesMax);
  /** Asks the gate if more is needed than is allowed before the key is looked up; returns its refusal. */
  const beyond = async (): Promise<"too_large" | Refusal | undefined> => {
    if (!unproven || unproven.bytesMax >= bounds.bytesMax) return "too_large";
    const refused = await unproven.gate();
    unproven = undefined;
    return refused;
  };

  const opened = new OpenedIds(context);
  for (const item of input) {
    for (const id of [item?.id, item?.approval_request_id]) {
      if (typeof id !== "string") continue;
      while (!opened.tryOpen(id, allowed())) {
        const stopped = await beyond();
        if (stopped) return stopped;
      }
    }
    await rest();
  }
  const places = placesOf(input, opened);
  const lost = places.includes("unknown");
  // The route refuses a reference that cannot be opened, and names its path, so the client's own request must stay.
  if (lost && !wereBrokenOff(input, places, opened)) return unchanged;
  if (places.every((place) => place === "as it is")) return unchanged;

  // An item that is referred to several times is serialized once.
  const texts = new Map<JsonObject, Buffer>();
  let bytes = 0;
  for (const place of places) {
    bytes += typeof place === "object" ? bytesOf(place, texts) : 0;
    while (bytes > allowed()) {
      const stopped = await beyond();
      if (stopped) return stopped;
    }
    await rest();
  }
  return { body: await withPlaces(body, places, texts, rest), lost };
}

/** The number of bytes that a place adds. @param texts receives the serialized item. */
function bytesOf(place: Exclude<Place, string>, texts: Map<JsonObject, Buffer>): number {
  if ("member" in place) return place.id?.length ?? 0;
  const text = texts.get(place.item) ?? Buffer.from(JSON.stringify(place.item));
  texts.set(place.item, text);
  return text.length;
}

/** The body with each item of its input replaced according to its place. */
async function withPlaces(
  body: Uint8Array,
  places: readonly Place[],
  texts: ReadonlyMap<JsonObject, Buffer>,
  rest: Rest,
): Promise<Uint8Array> {
  const span = findNested(body, ["input"]);
  if (!span) return body;
  const array = body.subarray(span.start, span.end);
  const pieces: Uint8Array[] = [body.subarray(0, span.start), OPEN];
  let index = 0;
  for (const { start, end } of elementSpans(array)) {
    const text = elementAt(places[index++] ?? "as it is", array.subarray(start, end), texts);
    if (text) pieces.push(...(pieces.length > 2 ? [COMMA, text] : [text]));
    await rest();
  }
  return Buffer.concat([...pieces, CLOSE, body.subarray(span.end)]);
}

function elementAt(place: Place, raw: Uint8Array, texts: ReadonlyMap<JsonObject, Buffer>): Uint8Array | undefined {
  if (place === "left out" || place === "unknown") return undefined;
  if (place === "as it is") return raw;
  return "member" in place ? spliceNested(raw, [place.member], place.id) : texts.get(place.item);
}

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/**
 * Ids of messages and of reasoning, as servers and this gateway make them. Calls are not included, because a call
 * cannot be left out.
 */
const SHORT_ID = /^(?:msg|rs)_[A-Za-z0-9_-]{1,128}$/;

/**
 * Whether the unknown references come from streams that broke off before their last item. All of these must hold:
 * - they are messages and reasoning;
 * - steps with unknown items exceed steps whose items are known by one at most;
 * - every sealed id opens.
 * A history from elsewhere, or one from which a client has removed the carriers, has more unknown references and is
 * refused. So is one with an item that was too large to carry: its step contains other items with sealed ids, or an
 * empty carrier.
 */
function wereBrokenOff(
  input: readonly (JsonObject | undefined)[],
  places: readonly Place[],
  opened: OpenedIds,
): boolean {
  const steps: Step[] = [];
  let step: Step = { known: false, unknown: false, complete: false };
  for (const [index, item] of input.entries()) {
    if (!item || isSaidToModel(item)) {
      steps.push(step);
      step = { known: false, unknown: false, complete: false };
      continue;
    }
    const { id } = item;
    const held = typeof id === "string" ? opened.get(id) : undefined;
    if (typeof id === "string" ? SEALED.test(id) && !held : isReference(item)) return false;
    if (places[index] === "unknown") {
      if (typeof id !== "string" || !SHORT_ID.test(id)) return false;
      step.unknown = true;
    }
    step.complete ||= held !== undefined && ("item" in held || held.items.length === 0);
    step.known ||= held !== undefined;
  }
  // A request does not end with a partial reply: the client adds a message to continue from it.
  if (step.unknown) return false;
  steps.push(step);
  if (steps.some(({ unknown, complete }) => unknown && complete)) return false;
  const unknown = steps.filter((one) => one.unknown).length;
  return unknown <= steps.filter((one) => one.known && !one.unknown).length + 1;
}

/** What is known of the references between two inputs to the model. */
interface Step {
  /** Whether any id in it opens. */
  known: boolean;
  unknown: boolean;
  /** Whether its reply was complete. */
  complete: boolean;
}

/** Whether an item is input to the model, which separates its steps. */
function isSaidToModel({ type, role }: JsonObject): boolean {
  return (role !== undefined && role !== "assistant") || (typeof type === "string" && type.endsWith("_output"));
}

/** The name of the loss if references were left out. */
const LOST = "input.item_reference";

/** The names of what was left out of a request's references; a refusal if the request is strict. */
export function lostReferences(
  { lostReferences: lost, model }: Pick<ClientRequest, "lostReferences" | "model">,
  { strict }: Pick<Permitted, "strict">,
): readonly string[] | Refusal {
  if (!lost) return [];
  if (!strict) return [LOST];
  const detail =
    "It refers to an item of a reply that broke off. That item is not available, and nothing may be left out.";
  return refusal("unsupported_parameter", { model, param: "input", detail });
}

/**
 * What replaces an item: another item, the same item with another id in a member (raw JSON; undefined: none), or
 * nothing.
 */
type Place =
  | { readonly item: JsonObject }
  | { readonly member: "id" | "approval_request_id"; readonly id: string | undefined }
  | "as it is"
  | "left out"
  | "unknown";

/**
 * Decides what replaces each item. A short id is looked up in the next carrier, because a carrier follows the items
 * that it contains, and some servers number their items from the start in each reply. Each item of a carrier is used
 * once. An id that is not there is looked up in all carriers. It is known if exactly one item has that id and exactly
 * one reference still needs it.
 */
function placesOf(input: readonly (JsonObject | undefined)[], opened: OpenedIds): readonly Place[] {
  const carriers = new Map<Held, Carried>();
  const places: Place[] = [];
  let next: Carried | undefined;
  for (let index = input.length - 1; index >= 0; index--) {
    const item = input[index];
    const held = typeof item?.id === "string" ? opened.get(item.id) : undefined;
    if (held && "items" in held) {
      next = carriers.get(held) ?? carriedBy(held.items);
      carriers.set(held, next);
    }
    places[index] = item
      ? (approvalPlace(item, opened) ?? placeOf(item, held, (id) => next?.get(id)?.pop()))
      : "as it is";
  }
  if (!places.includes("unknown")) return places;
  const unnamed = new Map<string, JsonObject[]>();
  for (const carried of carriers.values()) {
    for (const [id, items] of carried) unnamed.set(id, [...(unnamed.get(id) ?? []), ...items]);
  }
  const sought = new Map<unknown, number>();
  for (const [index, item] of input.entries()) {
    if (places[index] === "unknown") sought.set(item?.id, (sought.get(item?.id) ?? 0) + 1);
  }
  const onlyOne = (id: string) =>
    unnamed.get(id)?.length === 1 && sought.get(id) === 1 ? unnamed.get(id)?.[0] : undefined;
  return places.map((place, index) => {
    const item = input[index];
    return place === "unknown" && item ? placeOf(item, undefined, onlyOne) : place;
  });
}

/** Items of a carrier that have not been used yet, by id, in their order. */
type Carried = Map<string, JsonObject[]>;

function carriedBy(items: readonly JsonObject[]): Carried {
  const carried: Carried = new Map();
  for (const item of items) {
    if (typeof item.id !== "string") continue;
    const alike = carried.get(item.id);
    if (alike) alike.push(item);
    else carried.set(item.id, [item]);
  }
  return carried;
}

/** The response to an approval request names that request by the id of its item. */
function approvalPlace({ type, approval_request_id: id }: JsonObject, opened: OpenedIds): Place | undefined {
  const held = type === "mcp_approval_response" && typeof id === "string" ? opened.get(id) : undefined;
  return held && "item" in held ? { member: "approval_request_id", id: JSON.stringify(held.item.id) } : undefined;
}

/** @param find returns the item with a short id. */
function placeOf(item: JsonObject, held: Held | undefined, find: (id: string) => JsonObject | undefined): Place {
  const { id } = item;
  // The route handles ids of what a server keeps.
  if (typeof id !== "string" || isWrapped(id)) return "as it is";
  if (!isReference(item)) {
    if (!SEALED.test(id)) return "as it is";
    // A carrier that no longer opens is not an item of the server either.
    const isEmpty = item.type === "reasoning" && typeof item.encrypted_content !== "string";
    if (held ? "items" in held && item.type === "reasoning" : isEmpty) return "left out";
    return { member: "id", id: held && "item" in held ? JSON.stringify(held.item.id) : undefined };
  }
  if (held && "items" in held) return "left out";
  const named = held?.item ?? find(id);
  if (named === undefined) return "unknown";
  // Reasoning without encrypted content cannot be used by any server.
  return named.type === "reasoning" && typeof named.encrypted_content !== "string" ? "left out" : { item: named };
}

/** Whether an item of the input refers to another one; in this protocol the type may be absent. */
export function isReference(item: JsonObject): boolean {
  if (item.type === "item_reference") return true;
  return typeof item.id === "string" && (item.type ?? item.role ?? item.content ?? undefined) === undefined;
}
