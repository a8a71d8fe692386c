/**
 * Items that a client may refer to by their ids (docs/decisions/references-carry-what-they-name.md): nothing is kept here, so an
 * id that a responses client may refer to is the item itself, compressed and sealed for its account. A whole reply has one
 * such id for each item. A stream must name an item before its content is known, so its items keep short ids, and one more
 * item at its end, a reasoning item without a word, has an id that holds all of them.
 */
import { deflateRawSync } from "node:zlib";
import { arrayOf, type JsonObject, objectOf } from "../../../values/json-object.ts";
import { spliceNested } from "../../../wire/json.ts";
import type { ConvertContext, RouteFacts } from "../../exchange.ts";
import { withElements } from "../../passthrough/elements.ts";
import { nestsWithin } from "../../reply/depth.ts";
import { originOf, sealReasoning } from "../../rules/envelope.ts";
import { BINDING, DICTIONARY, KEPT_BYTES_MAX, REPLY_ID_CHARS_MAX, VERSION } from "./form.ts";

/** The longest id of an item, in characters. An item that needs more keeps its short id. */
const ITEM_ID_CHARS_MAX = 128 * 1024;
/** Items of one reply that get such ids: to make one takes 0.1 to 0.3 ms, in which nothing else is served. */
const REPLY_IDS_MAX = 512;

/** Items of a stream that are open at one time, of which more are not remembered. */
const BEGUN_MAX = 256;

/** Whether a client may refer to what a reply to its request holds: always, unless it has said that nothing is to be kept. */
export function mayBeReferredTo(json: Readonly<JsonObject>): boolean {
  return json.store !== false;
}

/**
 * An item as its id holds it: reasoning as an envelope that only the same model's servers are given back
 * (docs/translation-rules.md rule 38), and without the probabilities, which no model reads.
 * @param item as the upstream's own protocol writes it.
 */
export function keptNative(item: JsonObject, route: RouteFacts, context: ConvertContext): JsonObject {
  if (item.type !== "reasoning") return withoutProbabilities(item);
  if (typeof item.encrypted_content !== "string") return item;
  return { ...item, encrypted_content: sealReasoning([item], originOf(route), context) };
}

function withoutProbabilities(item: JsonObject): JsonObject {
  const content = arrayOf(item.content).map(objectOf);
  if (!content.some((part) => arrayOf(part?.logprobs).length > 0)) return item;
  return { ...item, content: content.map((part) => (part?.logprobs ? { ...part, logprobs: [] } : part)) };
}

/** How the items of a reply are put into ids. */
export interface Keeping {
  /** An item as its id holds it. */
  readonly keep: (item: JsonObject) => JsonObject;
  readonly context: ConvertContext;
}

/** Makes the ids of one reply, as long as there is room. */
export class SealedIds {
  readonly #context: ConvertContext;
  #room = REPLY_ID_CHARS_MAX;
  #tried = 0;

  constructor(context: ConvertContext) {
    this.#context = context;
  }

  /** Whether no further item gets an id. */
  get full(): boolean {
    return this.#tried >= REPLY_IDS_MAX;
  }

  /** @returns the id in whose place the item comes back; undefined where that would be too long, or no room is left: it keeps its own. */
  of(id: unknown, kept: JsonObject): string | undefined {
    if (this.full) return undefined;
    this.#tried++;
    const sealed = sealedText(withoutProbabilities(kept), this.#context, Math.min(this.#room, ITEM_ID_CHARS_MAX));
    if (sealed === undefined) return undefined;
    this.#room -= sealed.length;
    return `${prefixOf(id)}_${sealed}`;
  }
}

/** The kind of an item by its id: clients look at it. */
function prefixOf(id: unknown): string {
  return (typeof id === "string" && /^([a-z]{1,16})_/.exec(id)?.[1]) || "item";
}

function sealedText(value: unknown, context: ConvertContext, charsMax: number): string | undefined {
  if (!nestsWithin(value) || roomLeft(value, KEPT_BYTES_MAX) < 0) return undefined;
  const plain = Buffer.from(JSON.stringify(value));
  if (plain.length > KEPT_BYTES_MAX) return undefined;
  // Random bytes of a signature stay as long as they are: this saves sealing what cannot fit.
  const packed = Buffer.concat([Buffer.of(VERSION), deflateRawSync(plain, { level: 3, dictionary: DICTIONARY })]);
  if ((packed.length * 4) / 3 > charsMax) return undefined;
  const sealed = context.seal(packed, BINDING);
  return sealed.length > charsMax ? undefined : sealed;
}

/**
 * What the texts of a value leave of so many bytes; less than none where its JSON has more. To write one of megabytes in order to see
 * that takes 10 ns for each byte that is an escape.
 * @param value nests within JSON_DEPTH_MAX.
 */
function roomLeft(value: unknown, bytes: number): number {
  if (typeof value === "string") return bytes - value.length;
  let left = bytes;
  for (const member of typeof value === "object" && value !== null ? Object.values(value) : []) {
    left = roomLeft(member, left);
    if (left < 0) break;
  }
  return left;
}

/** The items of a stream, up to a bound. */
export class KeptItems {
  readonly #items: JsonObject[] = [];
  #bytes = 0;
  /** Ids of items that a client has seen begin. */
  readonly #begun = new Set<unknown>();

  /** An item begins: a client may refer to it from now on. */
  begin(id: unknown): void {
    if (typeof id === "string" && this.#begun.size < BEGUN_MAX) this.#begun.add(id);
  }

  /** The stream fails: what has begun and never ended is known to be nothing that could be sent again. */
  breakOff(): void {
    for (const id of [...this.#begun]) this.add({ id, type: "reasoning", summary: [] });
  }

  /** @param kept the finished item, as `keptNative` gives it. */
  add(kept: JsonObject): void {
    this.#begun.delete(kept.id);
    const item = withoutProbabilities(kept);
    if (!nestsWithin(item) || roomLeft(item, KEPT_BYTES_MAX) < 0) this.#bytes = KEPT_BYTES_MAX + 1;
    if (this.#bytes <= KEPT_BYTES_MAX) this.#bytes += Buffer.byteLength(JSON.stringify(item));
    if (this.#bytes > KEPT_BYTES_MAX) this.#items.length = 0;
    else this.#items.push(item);
  }

  /** The item that carries them, or that says that they were too large; undefined where there are none. */
  carrier(context: ConvertContext): JsonObject | undefined {
    if (this.#items.length === 0 && this.#bytes === 0) return undefined;
    const sealed = sealedText(this.#items, context, REPLY_ID_CHARS_MAX) ?? sealedText([], context, REPLY_ID_CHARS_MAX);
    return sealed === undefined ? undefined : { id: `rs_${sealed}`, type: "reasoning", summary: [] };
  }
}

/**
 * A whole response with sealed ids.
 * @param body the response's bytes; `json` the same, parsed. Every byte but the ids stays.
 */
export function withSealedIds(body: Uint8Array, json: JsonObject, { keep, context }: Keeping): Uint8Array {
  const output = arrayOf(json.output).map(objectOf);
  const ids = new SealedIds(context);
  return withElements(body, ["output"], (raw, index) => {
    const item = output[index];
    const id = item && typeof item.id === "string" && !ids.full ? ids.of(item.id, keep(item)) : undefined;
    return id === undefined ? raw : spliceNested(raw, ["id"], JSON.stringify(id));
  });
}

/** Says the item that carries the others, after all of them. */
export function writeCarrier(
  item: JsonObject,
  output_index: number,
  emit: (type: string, members: JsonObject) => void,
): void {
  emit("response.output_item.added", { output_index, item });
  emit("response.output_item.done", { output_index, item });
}
