/** Counts the model output in responses events and items. */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import { mergedCalls } from "../../values/tokens/tool-calls.ts";
import type { ProducedCounts } from "../../values/tokens/usage.ts";
import { countUnknown, Produced, Served, StreamOutput } from "../produced.ts";
import { callsIn, HostedCalls } from "./usage.ts";

const CALL_ITEM = /_call$/;
const LAST: ReadonlySet<string> = new Set(["response.completed", "response.incomplete"]);
/** Members of an item that are handled by name or are bookkeeping. */
const ITEM_KNOWN: ReadonlySet<string> = new Set([
  ...["content", "summary", "encrypted_content", "name", "arguments", "input", "result", "namespace", "action"],
  ...[
    "queries",
    "results",
    "container_id",
    "outputs",
    "server_label",
    "size",
    "quality",
    "background",
    "output_format",
  ],
]);
const PART_KNOWN: ReadonlySet<string> = new Set(["text", "refusal", "annotations", "transcript", "data"]);
/** The most items whose deltas and final form are recognized as the same; a further item counts twice if both come. */
const ITEMS_MAX = 4_096;

/**
 * Counts a stream. The final form of an item counts only if its deltas were not sent: most servers repeat everything
 * there, and some send it nowhere else.
 */
export class ResponsesOutput extends StreamOutput {
  /**
   * The items that have had output in deltas or in a final form: by their index, the characters of sealed reasoning that
   * are counted. OpenAI's own servers send its beginning with the opening form.
   */
  readonly #counted = new Map<number, number>();
  /**
   * The calls whose opening form is counted: by their index, the characters of its arguments. Usually it has only a name;
   * some servers send everything in it, and again in the final form.
   */
  readonly #opened = new Map<number, number>();
  /** Calls of hosted tools among the items. */
  readonly hostedCalls = new HostedCalls();

  protected override look(type: unknown, payload: JsonObject): boolean {
    if (typeof type !== "string") return false;
    if (LAST.has(type)) return this.#seeLast(objectOf(payload.response)?.output);
    if (type === "response.output_item.added") return this.#seeItem(payload, false);
    if (type === "response.output_item.done") return this.#seeItem(payload, true);
    if (type.endsWith(".done") || type.endsWith(".added")) return false;
    const delta = this.#seeDelta(type, payload);
    if (delta) this.#note(payload.output_index);
    return delta;
  }

  #seeDelta(type: string, payload: JsonObject): boolean {
    const { delta } = payload;
    if (type.startsWith("response.audio.")) return this.produced.media(delta);
    const partial = this.produced.media(payload.partial_image_b64);
    if (typeof delta === "string") return this.produced.text(delta) || partial;
    return this.produced.unknown(delta) || partial;
  }

  /** @param isLast whether this is the item's final form. */
  #seeItem(payload: JsonObject, isLast: boolean): boolean {
    const item = objectOf(payload.item);
    if (!item) return false;
    const place = payload.output_index;
    if (isLast ? this.hostedCalls.see(item) : this.hostedCalls.begin(item)) {
      this.served.know(this.hostedCalls.begun);
      if (isLast) countFound(this.served, item);
    }
    const sealed = textOf(item.encrypted_content) ?? "";
    const counted = isLast && typeof place === "number" ? this.#counted.get(place) : undefined;
    // Sealed reasoning is whole only in the final form.
    if (counted !== undefined) return this.produced.opaque(sealed.slice(counted));
    const found = countItem(this.produced, this.#uncounted(place, item));
    if (!found) return false;
    // Most of a call comes after its opening form.
    if (isLast || !CALL_ITEM.test(textOf(item.type) ?? "")) this.#note(place, sealed.length);
    else if (typeof place === "number" && this.#opened.size < ITEMS_MAX) {
      this.#opened.set(place, (textOf(item.arguments) ?? textOf(item.input) ?? "").length);
    }
    return true;
  }

  /** A call without what is counted of its opening form. */
  #uncounted(place: unknown, item: JsonObject): JsonObject {
    const opened = typeof place === "number" ? this.#opened.get(place) : undefined;
    if (opened === undefined) return item;
    const rest = (value: unknown) => textOf(value)?.slice(opened);
    return { ...item, name: undefined, arguments: rest(item.arguments), input: rest(item.input) };
  }

  /**
   * The last event repeats the whole output. Only items that were not seen before are counted, because some servers
   * send items only there.
   */
  #seeLast(output: unknown): boolean {
    const calls = callsIn(output);
    if (Object.keys(calls).length > 0) this.served.know(mergedCalls(calls, this.hostedCalls.begun));
    let found = false;
    for (const [place, value] of arrayOf(output).entries()) {
      const item = objectOf(value);
      if (item && !this.#counted.has(place)) found = countItem(this.produced, this.#uncounted(place, item)) || found;
    }
    return found;
  }

  /** @param sealed characters of sealed reasoning. */
  #note(place: unknown, sealed = 0): void {
    if (typeof place !== "number" || this.#counted.has(place) || this.#counted.size >= ITEMS_MAX) return;
    this.#counted.set(place, sealed);
  }
}

/** Counts the output of a whole response. */
export function countOutput(output: unknown): ProducedCounts {
  const produced = new Produced();
  const served = new Served();
  const calls = callsIn(output);
  if (Object.keys(calls).length > 0) served.know(calls);
  for (const item of arrayOf(output)) {
    const object = objectOf(item);
    if (!object) continue;
    countItem(produced, object);
    countFound(served, object);
  }
  return served.beside(produced.counts());
}

/** Counts the results of a call, if the request asked for them to be shown. */
function countFound(served: Served, { results, outputs, action }: JsonObject): void {
  const sources = objectOf(action)?.sources;
  const found = [results, outputs, sources].filter((one) => arrayOf(one).length > 0);
  if (found.length > 0) served.found(...found);
}

/** @returns whether the item contains output; a call does from its beginning. */
function countItem(produced: Produced, item: JsonObject): boolean {
  let found = CALL_ITEM.test(textOf(item.type) ?? "");
  if (typeof item.name === "string" && found) produced.text(item.name);
  for (const value of [item.arguments, item.input]) found = produced.text(value) || found;
  found = produced.opaque(item.encrypted_content) || found;
  found = produced.media(item.result) || found;
  for (const part of [...arrayOf(item.content), ...arrayOf(item.summary)]) found = countPart(produced, part) || found;
  return countUnknown(produced, item, ITEM_KNOWN) || found;
}

function countPart(produced: Produced, value: unknown): boolean {
  const part = objectOf(value);
  if (!part) return produced.unknown(value);
  let found = produced.text(part.text);
  found = produced.text(part.refusal) || found;
  found = produced.text(part.transcript) || found;
  found = produced.media(part.data) || found;
  return countUnknown(produced, part, PART_KNOWN) || found;
}
