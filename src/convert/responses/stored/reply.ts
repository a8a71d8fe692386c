/** Wraps ids in what an upstream sends: whole replies, streams, and answers about what it keeps. */
import { arrayOf, type JsonObject, objectOf, parseObject } from "../../../values/json-object.ts";
import { findNested, spliceNested } from "../../../wire/json.ts";
import { type SseEvent, sseFrame } from "../../../wire/sse.ts";
import { asBuffer } from "../../../wire/utf8.ts";
import { withElements } from "../../passthrough/elements.ts";
import type { SeenEvent, Watcher } from "../../watch.ts";
import { withWrappedContainers } from "./containers.ts";
import type { WrappedIds } from "./stored.ts";

/** Members of a response, of an event and of a page of items that contain an id. */
const ID_MEMBERS = ["id", "previous_response_id", "item_id", "first_id", "last_id"] as const;
/**
 * Those of an item. Some items of a page were written by clients, and no other member of theirs is checked when it is
 * sent.
 */
const ITEM_ID_MEMBERS = ["id", "approval_request_id"] as const;
/** Lists of items. */
const ITEM_LISTS = ["output", "data"] as const;

/**
 * A response, or a page of items, with wrapped ids; every other byte stays.
 * @param json `body`, parsed.
 */
export function withWrappedIds(body: Uint8Array, json: JsonObject, ids: WrappedIds): Uint8Array {
  let edited = withOwnIds(body, json, ids);
  for (const name of ITEM_LISTS) {
    const items = arrayOf(json[name]).map(objectOf);
    if (items.length === 0) continue;
    edited = withElements(edited, [name], (raw, index) => {
      const item = items[index];
      return item ? withOwnIds(raw, item, ids, ITEM_ID_MEMBERS) : raw;
    });
  }
  return edited;
}

function withOwnIds(
  body: Uint8Array,
  json: JsonObject,
  ids: WrappedIds,
  names: readonly string[] = ID_MEMBERS,
): Uint8Array {
  let edited = body;
  for (const name of names) {
    const wrapped = ids.of(json[name]);
    if (wrapped !== undefined) edited = spliceNested(edited, [name], JSON.stringify(wrapped));
  }
  return edited;
}

/** Members of an event that contain more ids. */
const NESTED = ["response", "item"] as const;

/** An event of a stream with wrapped ids; the same event if it has none. */
function eventWithWrappedIds(event: SseEvent, data: Uint8Array, payload: JsonObject, ids: WrappedIds): SseEvent {
  let edited = withOwnIds(data, payload, ids);
  for (const name of NESTED) {
    const inner = objectOf(payload[name]);
    const span = inner && findNested(edited, [name]);
    if (!inner || !span) continue;
    const raw = edited.subarray(span.start, span.end);
    const wrapped = name === "item" ? withOwnIds(raw, inner, ids, ITEM_ID_MEMBERS) : withWrappedIds(raw, inner, ids);
    if (wrapped !== raw) edited = spliceNested(edited, [name], Buffer.from(wrapped).toString());
  }
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
    return eventWithWrappedIds(event, event.data, payload, ids);
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
