/** Wraps ids in what an upstream sends: whole replies, streams, and answers about what it keeps. */
import { objectOf, parseObject } from "../../../values/json-object.ts";
import { findPlaces, replacePlaces, type WantedPlaces } from "../../../wire/json.ts";
import { type SseEvent, sseFrame } from "../../../wire/sse.ts";
import { asBuffer } from "../../../wire/utf8.ts";
import type { SeenEvent, Watcher } from "../../watch.ts";
import { CONTAINER_ID, IN_ENVIRONMENT, stringIn, withWrappedContainers } from "./containers.ts";
import type { WrappedIds } from "./stored.ts";

/** What is replaced: an id of what the server keeps, that of a container, the model's name. */
type Replaced = "kept" | "container" | "model";
type IdPlaces = WantedPlaces<Replaced>;

function ids(names: readonly string[]): ReadonlyMap<string, Replaced> {
  return new Map(names.map((name) => [name, "kept"]));
}

/**
 * Members of an item that contain an id. Some items of a page were written by clients, and no other member of theirs is
 * checked when it is sent.
 */
const IN_ITEM: IdPlaces = { values: ids(["id", "approval_request_id"]) };
/** Those of a response, of an event and of a page of items. */
const OWN_IDS = ids(["id", "previous_response_id", "item_id", "first_id", "last_id"]);

function listsOf(item: IdPlaces): NonNullable<IdPlaces["inner"]> {
  const list = { isList: true, wanted: item };
  return new Map([
    ["output", list],
    ["data", list],
    // Reasoning of the input that the server has withheld from its model.
    ["input_transformations", { isList: true, wanted: { values: ids(["id"]) } }],
  ]);
}

const IN_RESPONSE: IdPlaces = { values: OWN_IDS, inner: listsOf(IN_ITEM) };
const IN_EVENT: IdPlaces = {
  values: OWN_IDS,
  inner: new Map([
    ["response", { isList: false, wanted: IN_RESPONSE }],
    ["item", { isList: false, wanted: IN_ITEM }],
  ]),
};
const IN_STORED: IdPlaces = {
  values: new Map([...OWN_IDS, ["model", "model"]]),
  inner: listsOf({ values: new Map([...IN_ITEM.values, [CONTAINER_ID, "container"]]), inner: IN_ENVIRONMENT }),
};

/** A response, or a page of items, with wrapped ids; every other byte stays. */
export function withWrappedIds(body: Uint8Array, wrapped: WrappedIds): Uint8Array {
  return replacedIn(body, IN_RESPONSE, wrapped);
}

/**
 * What a server answers about a response that it keeps, with wrapped ids, those of containers too, and the name of the model
 * that its client asked for; every other byte stays.
 */
export function storedAnswer(body: Uint8Array, wrapped: WrappedIds, model: string): Uint8Array {
  return replacedIn(body, IN_STORED, wrapped, model);
}

function replacedIn(body: Uint8Array, wanted: IdPlaces, wrapped: WrappedIds, model?: string): Uint8Array {
  return replacePlaces(body, findPlaces(body, wanted), (kind, raw) => {
    const value = stringIn(raw);
    const other = kind === "model" ? value !== undefined && model : wrapped.of(value);
    return typeof other === "string" ? JSON.stringify(other) : undefined;
  });
}

/** An event of a stream with wrapped ids; the same event if it has none. */
function eventWithWrappedIds(event: SseEvent, data: Uint8Array, wrapped: WrappedIds): SseEvent {
  const edited = replacedIn(data, IN_EVENT, wrapped);
  return edited === data ? event : eventWith(edited, event);
}

/** An event with other data. */
function eventWith(data: Uint8Array, event: SseEvent): SseEvent {
  // A line end between members of JSON can be a blank; a frame of ours has one line.
  const text = asBuffer(data)
    .toString()
    .replace(/[\r\n]/g, " ");
  const raw = sseFrame(text, event.event === "" ? undefined : event.event);
  return { raw, event: event.event, data: Buffer.from(text) };
}

/**
 * The item that most events of a stream refer to, as bytes. An event that names it need not be parsed here, which saves
 * half of the work when every delta has to be examined. Inside a text, quotation marks are escaped, so these bytes are
 * always a member.
 */
class NamedItem {
  readonly #written: Buffer;
  readonly #wrapped: Buffer;

  constructor(id: string, wrapped: string) {
    this.#written = Buffer.from(`"item_id":${JSON.stringify(id)}`);
    this.#wrapped = Buffer.from(`"item_id":${JSON.stringify(wrapped)}`);
  }

  /** @returns undefined if the event names another item, or none, or is written differently. */
  in({ raw, event, data }: SseEvent): SseEvent | undefined {
    const wrappedData = data && this.#replaced(data);
    const wrappedRaw = wrappedData && this.#replaced(raw);
    return wrappedRaw && { raw: wrappedRaw, event, data: wrappedData };
  }

  #replaced(bytes: Uint8Array): Uint8Array | undefined {
    const buffer = asBuffer(bytes);
    const at = buffer.indexOf(this.#written);
    if (at < 0) return undefined;
    return Buffer.concat([buffer.subarray(0, at), this.#wrapped, buffer.subarray(at + this.#written.length)]);
  }
}

/** Converts an event to the one that the client gets. */
type RewriteEvent = (event: SseEvent) => SseEvent;

/** Wraps the container ids in events. */
export function wrappingContainers(ids: WrappedIds): RewriteEvent {
  return (event) => {
    const wrapped = event.data && withWrappedContainers(event.data, ids);
    return wrapped && wrapped !== event.data ? eventWith(wrapped, event) : event;
  };
}

/** Wraps, in events of a server that keeps responses, the ids of everything that it keeps. */
export function wrappingStored(ids: WrappedIds): RewriteEvent {
  const ofContainers = wrappingContainers(ids);
  let item: NamedItem | undefined;
  const rewritten = (event: SseEvent): SseEvent => {
    const payload = event.data?.length ? parseObject(asBuffer(event.data).toString()) : undefined;
    if (!payload || !event.data) return event;
    const { item_id: id } = payload;
    ids.responseId ??= wrappableId(objectOf(payload.response)?.id, ids);
    const wrapped = ids.of(id);
    if (typeof id === "string" && wrapped !== undefined) item = new NamedItem(id, wrapped);
    return eventWithWrappedIds(event, event.data, ids);
  };
  return (event) => {
    const contained = ofContainers(event);
    return item?.in(contained) ?? rewritten(contained);
  };
}

/** An id with which a client can ask for the response later. */
function wrappableId(id: unknown, ids: WrappedIds): string | undefined {
  return ids.of(id) === undefined ? undefined : (id as string);
}

/** A watcher that sees, and passes on to the client, only rewritten events. */
export class RewritingWatcher implements Watcher {
  readonly #watcher: Watcher;
  readonly #rewrite: RewriteEvent;

  constructor(watcher: Watcher, rewrite: RewriteEvent) {
    this.#watcher = watcher;
    this.#rewrite = rewrite;
  }

  get varying(): Watcher["varying"] {
    return this.#watcher.varying;
  }

  get fault(): Watcher["fault"] {
    return this.#watcher.fault;
  }

  again(...args: Parameters<Watcher["again"]>): void {
    this.#watcher.again(...args);
  }

  see(event: SseEvent): SeenEvent {
    return this.#watcher.see(this.#rewrite(event));
  }

  finish(): Uint8Array | undefined {
    return this.#watcher.finish();
  }

  counts(): ReturnType<Watcher["counts"]> {
    return this.#watcher.counts();
  }

  fail(...args: Parameters<Watcher["fail"]>): Uint8Array {
    return this.#watcher.fail(...args);
  }

  truncate(...args: Parameters<Watcher["truncate"]>): Uint8Array {
    return this.#watcher.truncate(...args);
  }

  heartbeat(): Uint8Array | undefined {
    return this.#watcher.heartbeat();
  }
}
