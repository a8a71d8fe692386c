/**
 * Ids of containers, in which a server runs a model's code and keeps its files. A server goes on in the one that an item of the
 * conversation names, whether it keeps responses or not: each is given out wrapped, and opens for its own account only
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import { arrayOf, type JsonObject, objectOf } from "../../../values/json-object.ts";
import { findNested, spliceNested } from "../../../wire/json.ts";
import { asBuffer } from "../../../wire/utf8.ts";
import type { WrappedIds } from "./stored.ts";

/** The member that names one, in items, in where they ran and in what a text cites. */
const MEMBER = "container_id";
/** It in a JSON text, where no other string can be taken for it: a quotation mark inside a string is escaped. */
const NAMED = /("container_id"\s*:\s*")([A-Za-z0-9][A-Za-z0-9._:-]*)"/g;

/** Whether a body may name a container; false for nearly all. */
function mayNameContainer(body: Uint8Array): boolean {
  return asBuffer(body).indexOf(MEMBER) >= 0;
}

/** Where the items stand in a response, in a page of items and in an event: what a client has written itself stays as it is. */
const ITEM_PLACES = [["output"], ["data"], ["response", "output"], ["item"], ["part"], ["annotation"]] as const;

/** What a server says, with wrapped ids of containers; itself where it names none. */
export function withWrappedContainers(json: Uint8Array, ids: WrappedIds): Uint8Array {
  if (!mayNameContainer(json)) return json;
  let edited = json;
  for (const path of ITEM_PLACES) {
    const span = findNested(edited, path);
    if (!span) continue;
    const written = edited.subarray(span.start, span.end);
    const wrapped = withContainers(written, (id) => ids.of(id));
    if (wrapped !== written) edited = spliceNested(edited, path, asBuffer(wrapped).toString());
  }
  return edited;
}

/**
 * A JSON text with other ids of containers.
 * @param other what stands in place of an id; undefined: it stays.
 * @returns the text itself where nothing changes.
 */
export function withContainers(json: Uint8Array, other: (id: string) => string | undefined): Uint8Array {
  // Each byte is a character of its own, so that none but these changes.
  const text = asBuffer(json).toString("latin1");
  const changed = text.replace(NAMED, (all, before: string, id: string) => {
    const written = other(id);
    return written === undefined ? all : `${before}${written}"`;
  });
  return changed === text ? json : Buffer.from(changed, "latin1");
}

/** A place in an item of the input that names a container. */
interface ContainerPlace {
  readonly id: unknown;
  /** Below the item. */
  readonly path: string;
}

/** Where an item names containers. */
export function containerPlaces(item: JsonObject): readonly ContainerPlace[] {
  const places: ContainerPlace[] = [];
  const look = (part: JsonObject | undefined, path: string) => {
    const id = part?.[MEMBER];
    if (id !== undefined && id !== null) places.push({ id, path: path + MEMBER });
  };
  look(item, "");
  look(objectOf(item.environment), "environment.");
  for (const [index, part] of arrayOf(item.content).entries()) {
    for (const [cited, annotation] of arrayOf(objectOf(part)?.annotations).entries()) {
      look(objectOf(annotation), `content[${index}].annotations[${cited}].`);
    }
  }
  return places;
}
