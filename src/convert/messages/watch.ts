/** Watches a messages stream. */
import type { ErrorAnswer } from "../../values/errors.ts";
import { type JsonObject, objectOf, parseObject } from "../../values/json-object.ts";
import type { Usage } from "../../values/tokens/usage.ts";
import { spliceNested } from "../../wire/json.ts";
import { jsonFrame, type SseEvent, sseFrame } from "../../wire/sse.ts";
import type { AnsweredModel } from "../answered-model.ts";
import type { DeltaRun, Varying } from "../delta-template.ts";
import type { AttemptCounts, UpstreamFault } from "../exchange.ts";
import { NOTHING_PRODUCED } from "../produced.ts";
import { finishOf, withOwnFinish } from "../rules/finish-words.ts";
import {
  brokenOff,
  errorIn,
  invalid,
  type MissingUsage,
  NOTHING,
  passed,
  reported,
  type SeenEvent,
  TRUNCATED,
  type Watcher,
  type WatcherOptions,
} from "../watch.ts";
import { renderStreamFailure } from "./error.ts";
import { MessagesOutput } from "./produced.ts";
import { ownStopReason } from "./reply-encode.ts";
import { MessageUsage, writeUsage } from "./usage.ts";

const PING = sseFrame('{"type":"ping"}', "ping");
/** The most blocks that can be open at one time. */
const OPEN_BLOCKS_MAX = 64;
/** `type`, `index` and `delta`. */
const DELTA_EVENT_MEMBERS = 3;
const TEXTS: ReadonlySet<string> = new Set(["text", "thinking", "partial_json"]);
const STOP = sseFrame('{"type":"message_stop"}', "message_stop");

/** Counts before a message has begun. */
const NOTHING_COUNTED: AttemptCounts = Object.freeze({ usage: undefined, final: false, produced: NOTHING_PRODUCED });

export class MessagesWatcher implements Watcher {
  readonly #rename: string | undefined;
  readonly #answered: AnsweredModel | undefined;
  #fault: UpstreamFault | undefined;
  readonly #usage = new MessageUsage();
  readonly #output = new MessagesOutput();
  #opened = false;
  #stopSeen = false;
  /** The upstream's reason for its failure; its usage may still follow. */
  #failed: string | undefined;
  /** Whether the error that ended the message included usage. */
  #failedWithCount = false;
  /** Indexes of open blocks; the protocol allows one at a time. */
  readonly #openBlocks = new Set<number>();
  #ended = false;
  /** The last event, if it had output. */
  #last: JsonObject | undefined;
  readonly #missingUsage: MissingUsage | undefined;
  /**
   * A `message_delta` whose usage is not sufficient for the charge; it is held back until usage follows or the message
   * ends.
   */
  #waiting: { readonly data: Uint8Array; readonly usage: JsonObject | undefined } | undefined;
  #deltaSeen = false;

  constructor({ rename, answered, missingUsage }: WatcherOptions) {
    this.#missingUsage = missingUsage;
    this.#rename = rename;
    this.#answered = answered;
  }

  get fault(): UpstreamFault | undefined {
    return this.#fault;
  }

  get varying(): Varying | undefined {
    return this.#last && varyingOf(this.#last);
  }

  again(source: Buffer, run: DeltaRun): void {
    this.#output.again(source, run);
  }

  see(event: SseEvent): SeenEvent {
    this.#last = undefined;
    if (event.data === undefined) return passed(event, false);
    if (event.data.length === 0) return NOTHING; // SDKs fail on it.
    const text = Buffer.from(event.data.buffer, event.data.byteOffset, event.data.byteLength).toString();
    if (text.trim() === "[DONE]") return NOTHING; // Some servers add chat's marker; SDKs ignore it, and so does the watcher.
    const payload = parseObject(text);
    if (!payload) return this.#refuse(invalid("an event is not a JSON object"));
    this.#answered?.see(payload);
    const type = payload.type;
    if (type === "error") {
      const error = errorIn(payload);
      this.#usage.count(payload.usage); // The usage is still needed for the charge.
      this.#failedWithCount = objectOf(payload.usage) !== undefined;
      return this.#refuse(reported(error?.type, error?.code, error?.message, undefined, error?.details));
    }
    if (type === "ping") return passed(event, false);
    if (type === "message_start") return this.#start(event, payload);
    if (!this.#opened) return this.#refuse(invalid("an event came before message_start"));
    if (type === "message_stop") {
      this.#usage.countLast(payload);
      if (this.#failed !== undefined) return this.#refuse(brokenOff(this.#failed));
      this.#ended = true;
      return this.#after(this.#settledDelta(), event, true);
    }
    const semantic = this.#output.see(type, payload);
    if (semantic) {
      this.#usage.produced();
      this.#last = payload;
    }
    this.#noteBlock(type, payload.index);
    return type === "message_delta" ? this.#seeEnding(event, payload, semantic) : passed(event, semantic);
  }

  /** Replaces an unknown stop reason by the protocol's own. One that means that the server broke off is no end. */
  #seeEnding(event: SseEvent, payload: JsonObject, semantic: boolean): SeenEvent {
    this.#usage.count(payload.usage);
    const word = objectOf(payload.delta)?.stop_reason;
    const finish = finishOf(word);
    if (typeof word !== "string" || finish === undefined) return this.#seeDelta(event, payload, semantic);
    if (finish === "failure") {
      this.#failed ??= word;
      return NOTHING;
    }
    this.#stopSeen = true;
    if (ownStopReason(word) === undefined) return this.#seeDelta(event, payload, semantic);
    const own = (bytes: Uint8Array) =>
      Buffer.from(withOwnFinish(Buffer.from(bytes).toString(), "stop_reason", ownStopReason));
    return this.#seeDelta({ ...event, raw: own(event.raw), data: event.data && own(event.data) }, payload, semantic);
  }

  /** Clients read `usage` of this event without checking that it is present. */
  #seeDelta(event: SseEvent, payload: JsonObject, semantic: boolean): SeenEvent {
    const before = this.#waiting && this.#settledDelta();
    this.#deltaSeen = true;
    const usage = objectOf(payload.usage);
    if (event.data === undefined || !this.#missingUsage || (usage && !this.#missingUsage(this.counts()))) {
      return this.#after(before, event, false, semantic);
    }
    this.#waiting = { data: event.data.slice(), usage };
    return before || semantic ? { bytes: before, semantic, terminal: false } : NOTHING;
  }

  /** The event that is held back, with the charged usage as far as it is known now; a new event if there was none. */
  #settledDelta(): Uint8Array | undefined {
    const counts = this.counts();
    const usage = this.#missingUsage?.(counts) ?? counts.usage;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!usage || (!waiting && (this.#deltaSeen || !this.#missingUsage))) return undefined;
    const written = { ...waiting?.usage, ...writeUsage(usage) };
    if (waiting) {
      const spliced = spliceNested(waiting.data, ["usage"], JSON.stringify(written));
      return jsonFrame(spliced, "message_delta");
    }
    const delta = { stop_reason: null, stop_sequence: null };
    return sseFrame(JSON.stringify({ type: "message_delta", delta, usage: written }), "message_delta");
  }

  #after(before: Uint8Array | undefined, event: SseEvent, terminal: boolean, semantic = false): SeenEvent {
    return before
      ? { bytes: Buffer.concat([before, event.raw]), semantic, terminal }
      : passed(event, semantic, terminal);
  }

  #noteBlock(type: unknown, index: unknown): void {
    if (typeof index !== "number") return;
    if (type === "content_block_stop") this.#openBlocks.delete(index);
    else if (type === "content_block_start" && this.#openBlocks.size < OPEN_BLOCKS_MAX) this.#openBlocks.add(index);
  }

  #start(event: SseEvent, payload: JsonObject): SeenEvent {
    const message = objectOf(payload.message);
    if (!message || this.#opened) return this.#refuse(invalid("message_start is empty or came twice"));
    this.#opened = true;
    this.#usage.begin(message.usage);
    const semantic = this.#output.see("message_start", payload);
    const usage = objectOf(message.usage) ? undefined : this.#missingUsage?.(NOTHING_COUNTED);
    if (event.data === undefined || (this.#rename === undefined && !usage)) return passed(event, semantic);
    let spliced = event.data;
    if (this.#rename !== undefined) spliced = spliceNested(spliced, ["message", "model"], JSON.stringify(this.#rename));
    if (usage) spliced = spliceNested(spliced, ["message", "usage"], JSON.stringify(writeUsage(usage)));
    return { bytes: jsonFrame(spliced, "message_start"), semantic, terminal: false };
  }

  #refuse(fault: UpstreamFault): SeenEvent {
    this.#fault = fault;
    return NOTHING;
  }

  finish(): Uint8Array | undefined {
    if (this.#ended) return undefined;
    if (this.#failed !== undefined) this.#fault = brokenOff(this.#failed);
    else if (this.#stopSeen) return Buffer.concat([this.#settledDelta() ?? Buffer.alloc(0), STOP]);
    else this.#fault = TRUNCATED;
    return undefined;
  }

  counts(): AttemptCounts {
    const isOver = this.#stopSeen || this.#failed !== undefined || this.#failedWithCount;
    return {
      usage: this.#usage.usage,
      final: isOver && this.#usage.final,
      produced: this.#output.counts(),
    };
  }

  fail(answer: ErrorAnswer, requestId: string): Uint8Array {
    return sseFrame(renderStreamFailure(answer, requestId, this.#fault?.code), "error");
  }

  truncate(usage: Usage): Uint8Array {
    if (this.#stopSeen) return Buffer.concat([this.#settledDelta() ?? Buffer.alloc(0), STOP]);
    const frame = (payload: JsonObject) => sseFrame(JSON.stringify(payload), String(payload.type));
    const closings = [...this.#openBlocks].map((index) => frame({ type: "content_block_stop", index }));
    const delta = { stop_reason: "max_tokens", stop_sequence: null };
    return Buffer.concat([...closings, frame({ type: "message_delta", delta, usage: writeUsage(usage) }), STOP]);
  }

  heartbeat(): Uint8Array | undefined {
    return this.#opened ? PING : undefined;
  }
}

/** Defined only for the delta of one text that contains nothing else. */
export function varyingOf(payload: JsonObject): Varying | undefined {
  const delta = objectOf(payload.delta);
  if (payload.type !== "content_block_delta" || !delta || Object.keys(payload).length !== DELTA_EVENT_MEMBERS) {
    return undefined;
  }
  const [text, further] = Object.keys(delta).filter((name) => name !== "type");
  if (text === undefined || further !== undefined || !TEXTS.has(text) || typeof delta[text] !== "string")
    return undefined;
  return { text };
}
