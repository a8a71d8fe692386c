/**
 * Ids of containers, in which a server runs a model's code and keeps its files. A server goes on in the one that an item of the
 * conversation says it ran in, whether it keeps responses or not: each is given out wrapped, and opens for its own account only
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md). A citation of a file says it, too: nothing runs there, and it stays.
 */
import { type JsonObject, objectOf } from "../../../values/json-object.ts";
import { elementSpans, findNested, type JsonSpan, memberSpans } from "../../../wire/json.ts";
import { asBuffer } from "../../../wire/utf8.ts";
import type { WrappedIds } from "./stored.ts";

/** The member that says in which: of an item, or of the environment in which a shell's commands ran. */
export const CONTAINER_ID = "container_id";
export const ENVIRONMENT = "environment";

/** Where an item says it. */
export interface ContainerPlace extends JsonSpan {
  readonly id: unknown;
  /** Below the item. */
  readonly path: typeof CONTAINER_ID | `${typeof ENVIRONMENT}.${typeof CONTAINER_ID}`;
}

/**
 * Finds where an item says in which containers it ran.
 * @param raw its bytes, a valid JSON text; of a place, [start, end) are those of the id.
 */
export function containersIn(raw: Uint8Array): readonly ContainerPlace[] {
  const places: ContainerPlace[] = [];
  const look = (object: Uint8Array, from: number, prefix: "" | `${typeof ENVIRONMENT}.`): void => {
    for (const { name, start, end } of memberSpans(object)) {
      const value = object.subarray(start, end);
      if (name === CONTAINER_ID) {
        places.push({ id: parsed(value), path: `${prefix}${name}`, start: from + start, end: from + end });
      } else if (name === ENVIRONMENT && prefix === "") look(value, start, `${name}.`);
    }
  };
  look(raw, 0, "");
  return places.filter(({ id }) => isNamed(id));
}

/** The ids that an item has, as JSON.parse sees it. */
export function containerIdsOf(item: JsonObject): readonly unknown[] {
  return [item[CONTAINER_ID], objectOf(item[ENVIRONMENT])?.[CONTAINER_ID]].filter(isNamed);
}

function parsed(value: Uint8Array): unknown {
  return JSON.parse(asBuffer(value).toString());
}

/** Some servers write an empty one where there is none. */
function isNamed(id: unknown): boolean {
  return id !== undefined && id !== null && id !== "";
}

/** Other ids in their places; every other byte stays. */
export function withContainers(
  raw: Uint8Array,
  places: readonly ContainerPlace[],
  other: (id: unknown) => string | undefined,
): Uint8Array {
  const pieces: Uint8Array[] = [];
  let written = 0;
  for (const { id, start, end } of places.toSorted((a, b) => a.start - b.start)) {
    const wanted = other(id);
    if (wanted === undefined) continue;
    pieces.push(raw.subarray(written, start), Buffer.from(JSON.stringify(wanted)));
    written = end;
  }
  return pieces.length === 0 ? raw : Buffer.concat([...pieces, raw.subarray(written)]);
}

/** Where a response, a page of items and an event have items. */
const ITEM_PLACES = [["output"], ["data"], ["response", "output"], ["item"]] as const;

/** What a server says, with wrapped ids where its items have them; itself where they have none. */
export function withWrappedContainers(json: Uint8Array, ids: WrappedIds): Uint8Array {
  if (asBuffer(json).indexOf(CONTAINER_ID) < 0) return json;
  const places: ContainerPlace[] = [];
  for (const path of ITEM_PLACES) {
    const span = findNested(json, path);
    if (!span) continue;
    const value = json.subarray(span.start, span.end);
    const items = path.at(-1) === "item" ? [{ start: 0, end: value.length }] : elementSpans(value);
    for (const item of items) {
      const from = span.start + item.start;
      for (const { start, end, ...place } of containersIn(value.subarray(item.start, item.end))) {
        places.push({ ...place, start: from + start, end: from + end });
      }
    }
  }
  return withContainers(json, places, (id) => ids.of(id));
}
