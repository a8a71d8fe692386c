/**
 * Records what a client has got of each output item of a stream that passes through, so that the stream can be ended in
 * the middle: open parts and items get their `done` events, and the last event repeats all of them.
 */
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import type { Emit } from "./item-writer.ts";

/**
 * The most characters that are kept, counted as JSON (deltas as text). A stream with more ends without its items. The
 * end event of a part counts in addition to its deltas until its item ends.
 */
const KEPT_CHARS_MAX = 16 * 1024 * 1024;

interface Item {
  /** The upstream's item, with the content of its deltas: a copy, which is changed in place. */
  value: Record<string, unknown>;
  done: boolean;
  /** Number of characters kept for it. */
  chars: number;
  /** Open parts, by the name of their list and their index in it. */
  readonly openParts: Map<string, PartPlace>;
}

interface PartPlace {
  readonly list: PartList;
  readonly index: number;
  /** Whether the `done` event of its text has been sent. */
  textDone: boolean;
}

/** The two lists of parts that an item may have. */
type PartList = (typeof PART_LISTS)[number];
const PART_LISTS = ["content", "summary"] as const;

/** Deltas of a part: the list of the part, and the member that they append to. */
const PART_DELTAS: ReadonlyMap<string, { readonly list: PartList; readonly member: string }> = new Map([
  ["response.output_text", { list: "content", member: "text" }],
  ["response.refusal", { list: "content", member: "refusal" }],
  ["response.reasoning_text", { list: "content", member: "text" }],
  ["response.reasoning_summary_text", { list: "summary", member: "text" }],
]);

/** Deltas of an item itself, and the member that they append to. */
const ITEM_DELTAS: ReadonlyMap<string, string> = new Map([
  ["response.function_call_arguments", "arguments"],
  ["response.mcp_call_arguments", "arguments"],
  ["response.custom_tool_call_input", "input"],
  ["response.code_interpreter_call_code", "code"],
]);

/** The event that ends a part's text, by the part's type. */
const TEXT_DONE: ReadonlyMap<unknown, string> = new Map([
  ["output_text", "response.output_text.done"],
  ["refusal", "response.refusal.done"],
  ["reasoning_text", "response.reasoning_text.done"],
  ["summary_text", "response.reasoning_summary_text.done"],
]);

/** The event that ends an item's input, and its member, by the item's type. */
const INPUT_DONE: ReadonlyMap<unknown, { readonly event: string; readonly member: string }> = new Map([
  ["function_call", { event: "response.function_call_arguments.done", member: "arguments" }],
  ["custom_tool_call", { event: "response.custom_tool_call_input.done", member: "input" }],
]);

const PART_EVENT = /^response\.(?:content|reasoning_summary)_part\.(added|done)$/;

export class DeliveredItems {
  readonly #items = new Map<number, Item>();
  #keptChars = 0;

  /**
   * Records an event that the client has got.
   * @param chars length of its JSON.
   */
  see(event: JsonObject, chars: number): void {
    const { type, output_index: place } = event;
    if (typeof type !== "string" || typeof place !== "number" || this.#keptChars > KEPT_CHARS_MAX) return;
    if (type === "response.output_item.added" || type === "response.output_item.done") {
      this.#put(place, objectOf(event.item), type.endsWith(".done"), chars);
    } else {
      const item = this.#items.get(place);
      if (item) this.#seeWithin(item, type, event, chars);
    }
    if (this.#keptChars > KEPT_CHARS_MAX) this.#items.clear();
  }

  #put(place: number, value: JsonObject | undefined, done: boolean, chars: number): void {
    if (!value) return;
    this.#keptChars += chars - (this.#items.get(place)?.chars ?? 0);
    this.#items.set(place, { value: ownCopy(value), done, chars, openParts: new Map() });
  }

  #seeWithin(item: Item, type: string, event: JsonObject, chars: number): void {
    const { delta } = event;
    const kept = type.endsWith(".delta") ? (typeof delta === "string" ? delta.length : 0) : chars;
    item.chars += kept;
    this.#keptChars += kept;
    const part = PART_EVENT.exec(type)?.[1];
    if (part) seePart(item, event, part === "done");
    else if (type.endsWith(".delta")) addDelta(item, type.slice(0, -".delta".length), event);
    else if (type.endsWith(".done")) seeDone(item, type.slice(0, -".done".length), event);
    else if (type === "response.output_text.annotation.added") seeAnnotation(item, event);
  }

  /** Open items, with their content so far. */
  open(): readonly JsonObject[] {
    return [...this.#items.values()].filter(({ done }) => !done).map(({ value }) => value);
  }

  /** Ends what is open, in the order of the items. @returns all items, which the last event repeats. */
  close(emit: Emit): readonly JsonObject[] {
    const output: JsonObject[] = [];
    for (const [place, item] of [...this.#items].sort(([a], [b]) => a - b)) {
      if (!item.done) closeItem(place, item, emit);
      output.push(item.value);
    }
    return output;
  }
}

/** A copy whose lists of parts can be changed, too. A copy for each event would take time by the size of the item. */
function ownCopy(value: JsonObject): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...value };
  for (const list of PART_LISTS) if (Array.isArray(value[list])) copy[list] = [...value[list]];
  return copy;
}

/** The parts of a list, which may be changed; an item that has no such list gets one. */
function partsOf({ value }: Item, list: PartList): unknown[] {
  const parts = value[list];
  if (Array.isArray(parts)) return parts;
  const none: unknown[] = [];
  value[list] = none;
  return none;
}

function addDelta(item: Item, stem: string, event: JsonObject): void {
  const { delta } = event;
  if (typeof delta !== "string") return;
  const own = ITEM_DELTAS.get(stem);
  if (own !== undefined) item.value[own] = `${item.value[own] ?? ""}${delta}`;
  const kind = PART_DELTAS.get(stem);
  const part = kind && partAt(item, kind.list, placeOf(event));
  if (kind && part) part[kind.member] = `${part[kind.member] ?? ""}${delta}`;
}

function closeItem(output_index: number, item: Item, emit: Emit): void {
  const { value } = item;
  const at = { item_id: value.id, output_index };
  for (const { list, index, textDone } of item.openParts.values()) {
    const part = partAt(item, list, index);
    if (!part) continue;
    const where = { ...at, [list === "content" ? "content_index" : "summary_index"]: index };
    const ending = TEXT_DONE.get(part.type);
    if (ending && !textDone) emit(ending, { ...where, ...wordsOf(part) });
    emit(list === "content" ? "response.content_part.done" : "response.reasoning_summary_part.done", {
      ...where,
      part,
    });
  }
  const input = INPUT_DONE.get(value.type);
  if (input) emit(input.event, { ...at, [input.member]: value[input.member] ?? "" });
  value.status = "incomplete";
  item.done = true;
  emit("response.output_item.done", { output_index, item: item.value });
}

function wordsOf(part: JsonObject): JsonObject {
  if (part.type === "refusal") return { refusal: part.refusal ?? "" };
  return part.type === "output_text" ? { text: part.text ?? "", logprobs: [] } : { text: part.text ?? "" };
}

/** The index of an event's part in its list. */
function placeOf(event: JsonObject): unknown {
  return event.content_index ?? event.summary_index;
}

/** A part of an item; it may be changed, because `seePart` copied it. */
function partAt(item: Item, list: PartList, index: unknown): Record<string, unknown> | undefined {
  return typeof index === "number" ? objectOf(arrayOf(item.value[list])[index]) : undefined;
}

function seePart(item: Item, event: JsonObject, done: boolean): void {
  const list: PartList = event.summary_index === undefined ? "content" : "summary";
  const index = placeOf(event);
  const part = objectOf(event.part);
  // Parts come in sequence; an index beyond the next one is invalid.
  if (typeof index !== "number" || !part || !(index >= 0 && index <= arrayOf(item.value[list]).length)) return;
  const { annotations } = part;
  partsOf(item, list)[index] = { ...part, ...(Array.isArray(annotations) && { annotations: [...annotations] }) };
  const key = `${list}:${index}`;
  if (done) item.openParts.delete(key);
  else item.openParts.set(key, { list, index, textDone: false });
}

function seeDone(item: Item, stem: string, event: JsonObject): void {
  const own = ITEM_DELTAS.get(stem);
  if (own !== undefined && event[own] !== undefined) item.value[own] = event[own];
  const kind = PART_DELTAS.get(stem);
  const open = kind && item.openParts.get(`${kind.list}:${placeOf(event)}`);
  if (open) open.textDone = true;
}

function seeAnnotation(item: Item, event: JsonObject): void {
  const part = partAt(item, "content", event.content_index);
  if (!part) return;
  if (Array.isArray(part.annotations)) part.annotations.push(event.annotation);
  else part.annotations = [event.annotation];
}
