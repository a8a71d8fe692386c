/**
 * Ids of containers, in which a server runs a model's code and keeps its files. A server continues in the container
 * that an item of the conversation names, whether it keeps responses or not. So each container id is sent to the client
 * wrapped, and opens for its own account only (docs/decisions/stateful-upstreams-get-wrapped-ids.md). Citations of
 * files contain one too; nothing runs there, so these are not wrapped.
 */
import { type JsonObject, objectOf } from "../../../values/json-object.ts";
import { findPlaces, type JsonSpan, memberSpans, replacePlaces, type WantedPlaces } from "../../../wire/json.ts";
import { asBuffer } from "../../../wire/utf8.ts";
import type { WrappedIds } from "./stored.ts";

/** The member with the container's id: in an item, or in the environment in which a shell's commands ran. */
export const CONTAINER_ID = "container_id";
export const ENVIRONMENT = "environment";

/** The position of a container id in an item. */
export interface ContainerPlace extends JsonSpan {
  readonly id: unknown;
  /** The path within the item. */
  readonly path: typeof CONTAINER_ID | `${typeof ENVIRONMENT}.${typeof CONTAINER_ID}`;
}

/**
 * Finds the container ids of an item.
 * @param raw the item's bytes, valid JSON. The [start, end) of a place is that of the id.
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

/** The container ids of an item, as JSON.parse reads them. */
export function containerIdsOf(item: JsonObject): readonly unknown[] {
  return [item[CONTAINER_ID], objectOf(item[ENVIRONMENT])?.[CONTAINER_ID]].filter(isNamed);
}

function parsed(value: Uint8Array): unknown {
  return JSON.parse(asBuffer(value).toString());
}

/** Some servers write an empty id if there is none. */
function isNamed(id: unknown): boolean {
  return id !== undefined && id !== null && id !== "";
}

/** Replaces ids at these places; every other byte stays. */
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

/** The longest id as it is written, each character as an escape. */
const ID_BYTES_MAX = 2_048;

/** A short string in a server's JSON; undefined if it is something else, which is no id. @param raw its bytes. */
export function stringIn(raw: Uint8Array): string | undefined {
  const value = raw.length <= ID_BYTES_MAX ? parsed(raw) : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Where the environment of an item has the id of its container. */
export const IN_ENVIRONMENT: NonNullable<WantedPlaces<"container">["inner"]> = new Map([
  [ENVIRONMENT, { isList: false, wanted: { values: new Map([[CONTAINER_ID, "container"]]) } }],
]);
const IN_ITEM: WantedPlaces<"container"> = { values: new Map([[CONTAINER_ID, "container"]]), inner: IN_ENVIRONMENT };
const LIST = { isList: true, wanted: IN_ITEM };
/** Where a response, a page of items and an event have items. */
const IN_ANY: WantedPlaces<"container"> = {
  values: new Map(),
  inner: new Map([
    ["output", LIST],
    ["data", LIST],
    ["item", { isList: false, wanted: IN_ITEM }],
    ["response", { isList: false, wanted: { values: new Map(), inner: new Map([["output", LIST]]) } }],
  ]),
};

/** A server's JSON with the container ids of its items wrapped; the same bytes if there are none. */
export function withWrappedContainers(json: Uint8Array, ids: WrappedIds): Uint8Array {
  if (asBuffer(json).indexOf(CONTAINER_ID) < 0) return json;
  return replacePlaces(json, findPlaces(json, IN_ANY), (_, raw) => {
    const wrapped = ids.of(stringIn(raw));
    return wrapped === undefined ? undefined : JSON.stringify(wrapped);
  });
}
