/** Decodes a responses stream to hub events (docs/translation-rules.md rules 43, 44 and 48 to 55). */
import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { Varying } from "../delta-template.ts";
import { StreamDecoder } from "../reply/decoder.ts";
import { createdSeconds, logprobList } from "../reply/facts.ts";
import { invalid } from "../watch.ts";
import { ResponsesOutput } from "./produced.ts";
import { callIdOf, FAILED, stopOf } from "./reply-decode.ts";
import { CallItem, itemFor, MessageItem, ReasoningItem, type StreamItem } from "./stream-items.ts";
import { readUsage } from "./usage.ts";
import { varyingOf } from "./watch.ts";

const MESSAGE_EVENTS: ReadonlySet<string> = new Set([
  "response.output_text.delta",
  "response.refusal.delta",
  "response.output_text.annotation.added",
]);
const REASONING_EVENTS: ReadonlySet<string> = new Set([
  "response.reasoning_summary_text.delta",
  "response.reasoning_summary_text.done",
  "response.reasoning_text.delta",
  "response.reasoning_text.done",
]);
/** Events that open a part of reasoning; parts of messages open with their first delta. */
const PART_EVENTS: ReadonlySet<string> = new Set(["response.content_part.added", "response.reasoning_part.added"]);
const CALL_EVENTS: ReadonlySet<string> = new Set([
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.delta",
  "response.custom_tool_call_input.done",
]);

/**
 * Decodes events. Items are identified by `item_id`, else by `output_index`, and may interleave. The final form of an
 * item counts if its deltas were missing; an empty `output` at the end takes nothing back (rule 55).
 */
export class ResponsesStreamDecoder extends StreamDecoder {
  protected override readonly output = new ResponsesOutput();
  /** In the order in which they opened. */
  readonly #items = new Set<StreamItem>();
  readonly #byId = new Map<string, StreamItem>();
  readonly #byIndex = new Map<number, StreamItem>();
  readonly #last = new Map<StreamItem["kind"], StreamItem>();

  protected override read(payload: JsonObject, name: string): void {
    const type = textOf(payload.type) ?? name;
    const response = objectOf(payload.response);
    if (type === "error") this.#readError(payload);
    else if (type === "keepalive") this.ping();
    else if (response && type.startsWith("response.")) this.#readResponse(type.slice("response.".length), response);
    else if (this.started || type.startsWith("response.")) this.#readItemEvent(type, payload);
    else this.refuse(invalid("an event came before response.created"));
  }

  protected override varyingOf(payload: JsonObject): Varying | undefined {
    return varyingOf(payload);
  }

  /** Some servers add chat's marker; it has no meaning here. */
  protected override readDone(): void {}

  /** The error is in the event itself; the vendor's own servers may nest it. */
  #readError(payload: JsonObject): void {
    const nested = objectOf(payload.error);
    const error = nested ?? payload;
    this.#countFailed(payload);
    this.report(nested?.type, error.code, error.message);
  }

  /** The usage is kept for the charge; the client gets no more events. */
  #countFailed(counted: JsonObject): void {
    const usage = readUsage(counted, this.output.hostedCalls);
    this.failedWithCount = usage !== undefined;
    this.usage = usage ?? this.usage;
  }

  /** @param state what happened to the response: the event's type without its prefix. */
  #readResponse(state: string, response: JsonObject): void {
    const isTerminal = state === "completed" || state === "incomplete";
    if (FAILED.has(state) || (isTerminal && FAILED.has(response.status))) {
      this.#countFailed(response);
      const error = objectOf(response.error);
      this.report(error?.type, error?.code ?? response.status, error?.message);
      return;
    }
    this.start({
      upstreamId: textOf(response.id),
      serviceTier: textOf(response.service_tier),
      createdS: createdSeconds(response.created_at),
    });
    this.countUsage(readUsage(response, this.output.hostedCalls));
    if (!isTerminal) return;
    this.#readOutput(response);
    const stop = stopOf(response, state === "incomplete" || response.status === "incomplete");
    if (stop === "failure") this.failAtEnd(String(objectOf(response.incomplete_details)?.reason));
    else this.stop = stop;
    this.finish();
  }

  /** Reads an event of an item. Progress of hosted tools, parts that open, and unknown events are ignored. */
  #readItemEvent(type: string, payload: JsonObject): void {
    // Some servers begin with the first item.
    if (!this.started) this.start({ upstreamId: undefined, serviceTier: undefined, createdS: undefined });
    if (type === "response.output_item.added") this.#add(payload);
    else if (type === "response.output_item.done") this.#finishItem(payload);
    else if (PART_EVENTS.has(type)) this.#openPart(payload);
    else if (type === "response.content_part.done") this.#finishPart(payload);
    else if (MESSAGE_EVENTS.has(type)) this.#readMessageEvent(type, payload);
    else if (REASONING_EVENTS.has(type)) this.#readReasoningEvent(type, payload);
    else if (CALL_EVENTS.has(type)) this.#readCallEvent(payload);
  }

  #readMessageEvent(type: string, payload: JsonObject): void {
    const part = partOf(payload);
    const delta = textOf(payload.delta) ?? "";
    const item = this.#message(payload);
    if (type === "response.output_text.delta") item?.text(part, delta, logprobList(payload.logprobs));
    else if (type === "response.refusal.delta") item?.refusal(part, delta);
    else item?.cite(part, payload.annotation);
  }

  #readReasoningEvent(type: string, payload: JsonObject): void {
    const source = type.startsWith("response.reasoning_text") ? "content" : "summary";
    const part = numberOr0(source === "content" ? payload.content_index : payload.summary_index);
    const item = this.#reasoning(payload);
    if (type.endsWith(".delta")) item?.append(source, part, textOf(payload.delta) ?? "");
    else item?.finishPart(source, part, textOf(payload.text) ?? "");
  }

  /** Deltas have `delta`; the event after them has `arguments` or `input`. */
  #readCallEvent(payload: JsonObject): void {
    const item = this.#call(payload);
    item?.append(textOf(payload.delta) ?? "");
    item?.setWhole(textOf(payload.arguments) ?? textOf(payload.input) ?? "");
  }

  #openPart(payload: JsonObject): void {
    const item = this.#find(payload);
    if (item instanceof ReasoningItem) item.openPart(partOf(payload));
  }

  #finishPart(payload: JsonObject): void {
    const part = objectOf(payload.part);
    if (part?.type === "output_text" || part?.type === "refusal") {
      this.#message(payload)?.finishPart(partOf(payload), part);
    }
  }

  #finishItem(payload: JsonObject): void {
    const final = objectOf(payload.item);
    const item = final && (this.#find(payload, final) ?? this.#add(payload));
    item?.finish(final);
  }

  /** Finishes every item of the last event; an item that was not seen before is added first. */
  #readOutput(response: JsonObject): void {
    for (const [index, one] of arrayOf(response.output).entries()) {
      if (this.sink.excess !== undefined) break;
      const item = objectOf(one);
      if (!item) continue;
      const where = { item, output_index: index };
      (this.#find(where, item) ?? this.#add(where)).finish(item);
    }
  }

  /** Opens an item. An earlier item with the same index or id ends, because these now mean the new one. */
  #add(payload: JsonObject): StreamItem {
    const described = objectOf(payload.item) ?? {};
    const waiting = this.#byIndex.get(indexOf(payload) ?? -1) ?? this.#byId.get(textOf(described.id) ?? "");
    if (waiting instanceof CallItem && waiting.isUnnamed && callIdOf(described)) {
      waiting.learn(described); // Its deltas came first.
      this.#note(waiting, payload, described);
      return waiting;
    }
    waiting?.finish(undefined);
    const item = itemFor(described, this.sink);
    this.#note(item, payload, described);
    return item;
  }

  #note(item: StreamItem, payload: JsonObject, described: JsonObject): void {
    this.sink.claim(); // Every index and id counts, including those of items that are left out.
    this.#items.add(item);
    this.#last.set(item.kind, item);
    const index = indexOf(payload);
    if (index !== undefined) this.#byIndex.set(index, item);
    const callId = callIdOf(described);
    for (const id of [textOf(described.id), textOf(payload.item_id), callId && callKey(callId)]) {
      if (!id) continue;
      this.sink.keep(id);
      this.#byId.set(id, item);
    }
  }

  /** The item of an event. Some servers change an item's id from event to event; the index then decides. */
  #find(payload: JsonObject, described?: JsonObject): StreamItem | undefined {
    const id = textOf(payload.item_id) ?? textOf(described?.id);
    const callId = described && callIdOf(described);
    const byId = (id && this.#byId.get(id)) || (callId && this.#byId.get(callKey(callId)));
    if (byId) return byId;
    const index = indexOf(payload);
    const byIndex = index === undefined ? undefined : this.#byIndex.get(index);
    if (byIndex === undefined || described === undefined) return byIndex;
    return byIndex.kind === KINDS.get(described.type) ? byIndex : undefined;
  }

  #message(payload: JsonObject): MessageItem | undefined {
    const item =
      this.#find(payload) ?? this.#lastOf("message", payload) ?? this.#open(payload, new MessageItem(this.sink));
    return item instanceof MessageItem ? item : undefined;
  }

  #reasoning(payload: JsonObject): ReasoningItem | undefined {
    const item =
      this.#find(payload) ?? this.#lastOf("reasoning", payload) ?? this.#open(payload, new ReasoningItem(this.sink));
    return item instanceof ReasoningItem ? item : undefined;
  }

  #call(payload: JsonObject): CallItem | undefined {
    const item =
      this.#find(payload) ?? this.#lastOf("call", payload) ?? this.#open(payload, new CallItem(this.sink, undefined));
    return item instanceof CallItem ? item : undefined;
  }

  /** The newest item of a kind, for an event that has neither an item id nor an index. */
  #lastOf(kind: StreamItem["kind"], payload: JsonObject): StreamItem | undefined {
    if (indexOf(payload) !== undefined || textOf(payload.item_id) !== undefined) return undefined;
    return this.#last.get(kind);
  }

  /** A delta for no open item opens one (rule 52). */
  #open(payload: JsonObject, item: StreamItem): StreamItem {
    this.#note(item, payload, {});
    return item;
  }

  protected override closeBlocks(): void {
    for (const item of this.#items) item.finish(undefined);
  }
}

const KINDS: ReadonlyMap<unknown, StreamItem["kind"]> = new Map([
  ["message", "message"],
  ["reasoning", "reasoning"],
  ["function_call", "call"],
  ["custom_tool_call", "call"],
  ["image_generation_call", "image"],
] as const);

function indexOf(payload: JsonObject): number | undefined {
  return typeof payload.output_index === "number" ? payload.output_index : undefined;
}

/** The key of a call id, which may equal an item id. */
function callKey(callId: string): string {
  return `call:${callId}`;
}

/** The index of a content part; 0 if the event has none. */
function partOf(payload: JsonObject): number {
  return numberOr0(payload.content_index);
}

function numberOr0(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
