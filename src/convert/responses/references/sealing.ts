/**
 * Items that a client may refer to by their ids (docs/decisions/references-carry-what-they-name.md). Nothing is stored
 * here: such an id is the item itself, compressed and sealed for its account. In a whole reply each item has such an
 * id. A stream must name an item before its content is known, so its items keep short ids. One more item at its end,
 * the carrier, is a reasoning item without text whose id contains all of them.
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
/**
 * The most items of one reply that get such ids. Making one takes 0.1 to 0.3 ms, during which the event loop is
 * blocked.
 */
const REPLY_IDS_MAX = 512;

/** The most open items of a stream that are remembered. */
const BEGUN_MAX = 256;

/** Whether a client may refer to the items of its reply: always, unless it has sent `store: false`. */
export function mayBeReferredTo(json: Readonly<JsonObject>): boolean {
  return json.store !== false;
}

/**
 * An item in the form that its id contains. Reasoning is an envelope, which only servers of the same model get back
 * (docs/translation-rules.md rule 38). Probabilities are removed, because no model reads them.
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
  /** Returns an item in the form that its id contains. */
  readonly keep: (item: JsonObject) => JsonObject;
  readonly context: ConvertContext;
}

/** Makes the ids of one reply while there is room. */
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

  /**
   * @returns an id that contains the item; undefined if it would be too long or no room is left: the item keeps its own
   * id.
   */
  of(id: unknown, kept: JsonObject): string | undefined {
    if (this.full) return undefined;
    this.#tried++;
    const sealed = sealedText(withoutProbabilities(kept), this.#context, Math.min(this.#room, ITEM_ID_CHARS_MAX));
    if (sealed === undefined) return undefined;
    this.#room -= sealed.length;
    return `${prefixOf(id)}_${sealed}`;
  }
}

/** The kind of an item, taken from its id; clients check it. */
function prefixOf(id: unknown): string {
  return (typeof id === "string" && /^([a-z]{1,16})_/.exec(id)?.[1]) || "item";
}

function sealedText(value: unknown, context: ConvertContext, charsMax: number): string | undefined {
  if (!nestsWithin(value) || roomLeft(value, KEPT_BYTES_MAX) < 0) return undefined;
  const plain = Buffer.from(JSON.stringify(value));
  if (plain.length > KEPT_BYTES_MAX) return undefined;
  // A check before sealing: random bytes of a signature do not compress, so it may not fit.
  const packed = Buffer.concat([Buffer.of(VERSION), deflateRawSync(plain, { level: 3, dictionary: DICTIONARY })]);
  if ((packed.length * 4) / 3 > charsMax) return undefined;
  const sealed = context.seal(packed, BINDING);
  return sealed.length > charsMax ? undefined : sealed;
}

/**
 * The bytes that are left of `bytes` after the texts of a value; negative if its JSON is longer. Serializing megabytes
 * to find that out would take 10 ns for each byte that is an escape.
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

/** The items of a stream, up to a limit. */
export class KeptItems {
  readonly #items: JsonObject[] = [];
  #bytes = 0;
  /** Ids of items that the client has seen begin. */
  readonly #begun = new Set<unknown>();

  /** An item begins: from now on a client may refer to it. */
  begin(id: unknown): void {
    if (typeof id === "string" && this.#begun.size < BEGUN_MAX) this.#begun.add(id);
  }

  /** The stream fails: records each open item as one without content that could be sent back. */
  breakOff(): void {
    for (const id of [...this.#begun]) this.add({ id, type: "reasoning", summary: [] });
  }

  /** @param kept the finished item, as `keptNative` returns it. */
  add(kept: JsonObject): void {
    this.#begun.delete(kept.id);
    const item = withoutProbabilities(kept);
    if (!nestsWithin(item) || roomLeft(item, KEPT_BYTES_MAX) < 0) this.#bytes = KEPT_BYTES_MAX + 1;
    if (this.#bytes <= KEPT_BYTES_MAX) this.#bytes += Buffer.byteLength(JSON.stringify(item));
    if (this.#bytes > KEPT_BYTES_MAX) this.#items.length = 0;
    else this.#items.push(item);
  }

  /** The item that carries them, or an empty carrier if they were too large; undefined if there are none. */
  carrier(context: ConvertContext): JsonObject | undefined {
    if (this.#items.length === 0 && this.#bytes === 0) return undefined;
    const sealed = sealedText(this.#items, context, REPLY_ID_CHARS_MAX) ?? sealedText([], context, REPLY_ID_CHARS_MAX);
    return sealed === undefined ? undefined : { id: `rs_${sealed}`, type: "reasoning", summary: [] };
  }
}

/**
 * A whole response with sealed ids.
 * @param body the response's bytes; `json` is the same, parsed. Every byte except the ids stays.
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

/** Writes the carrier after all other items. */
export function writeCarrier(
  item: JsonObject,
  output_index: number,
  emit: (type: string, members: JsonObject) => void,
): void {
  emit("response.output_item.added", { output_index, item });
  emit("response.output_item.done", { output_index, item });
}
