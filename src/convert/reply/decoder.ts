/** What the three stream decoders share: one event in, hub events out, and a fault instead of an exception. */

import { type JsonObject, textOf } from "../../values/json-object.ts";
import type { ProducedCounts, Usage } from "../../values/tokens/usage.ts";
import type { SseEvent } from "../../wire/sse.ts";
import { AnsweredModel } from "../answered-model.ts";
import type { Varying } from "../delta-template.ts";
import type { AttemptCounts, UpstreamFault } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import { type HubReply, type ReplyEvent, type ReplyItem, type Stop, stopFor } from "../hub-reply.ts";
import { parseWithDigits } from "../json-exact.ts";
import type { StreamOutput } from "../produced.ts";
import { beyondLimit, brokenOff, invalid, reported, TOO_MANY_NAMES, TRUNCATED } from "../watch.ts";
import { settledStop } from "./facts.ts";
import { outlineOf } from "./outline.ts";
import { hasTooManyNames } from "./parse.ts";
import { EventSink, REPLY_BLOCKS_MAX } from "./sink.ts";
import type { Ids } from "./tool-call.ts";

/**
 * A whole reply in the hub form, and counts of all that it contains, including what no client of another protocol gets.
 */
export interface DecodedReply {
  readonly reply: HubReply;
  readonly produced: ProducedCounts;
}

const DONE = "[DONE]";
/** The most characters of an upstream's error message that are kept. */
const MESSAGE_CHARS_MAX = 500;
const NOTHING: readonly ReplyEvent[] = Object.freeze([]);

/**
 * Decodes an upstream's stream. Events keep the order that `ReplyEvent` documents; the last one is `reply-end`, or
 * `reply-error` exactly when `fault` is set. Nothing that an upstream sends makes it throw.
 */
export abstract class StreamDecoder {
  protected readonly sink: EventSink;
  /** Counts all output, including what the hub cannot express, because the upstream bills that too. */
  protected abstract readonly output: StreamOutput;
  /** Whether the current event contains output. */
  protected hasOutput = false;
  readonly #answered: AnsweredModel;
  /** The last event that was read. */
  #last: JsonObject | undefined;
  protected usage: Usage | undefined;
  /** Whether `usage`, once the reply is over, is the final count and not a snapshot from its beginning. */
  protected usageIsWhole = true;
  /** Whether an error that ended the reply included the upstream's final usage. */
  protected failedWithCount = false;
  #fault: UpstreamFault | undefined;
  #started = false;
  #ended = false;
  #stop: Stop | undefined;
  /** The upstream's error code, while its usage may still follow. */
  #failed: string | undefined;

  /** @param ids source of ids for calls that have none (docs/translation-rules.md rule 35). */
  constructor(plan: ReplyPlan, ids: Ids) {
    this.sink = new EventSink(plan, ids);
    this.#answered = new AnsweredModel(plan.upstreamModel, plan.answersAs);
  }

  /** Set when the upstream reported an error or violated its protocol. */
  get fault(): UpstreamFault | undefined {
    return this.#fault;
  }

  /** True once `reply-end` or `reply-error` has been returned; later events are ignored (rule 48). */
  get ended(): boolean {
    return this.#ended;
  }

  /** Takes one frame. Comments, and frames without data, have no meaning. */
  push(event: SseEvent): readonly ReplyEvent[] {
    if (this.#ended || event.data === undefined || event.data.length === 0) return NOTHING;
    if (hasTooManyNames(event.data)) {
      this.#refuseUnparsed(event, event.data);
      return this.#taken();
    }
    const text = Buffer.from(event.data.buffer, event.data.byteOffset, event.data.byteLength).toString();
    if (text.trim() === DONE) this.readDone();
    else {
      const payload = parseWithDigits(text);
      if (payload) {
        this.hasOutput = this.output.see(textOf(payload.type) ?? event.event, payload);
        this.#last = payload;
        this.#answered.see(payload);
        this.read(payload, event.event);
      } else this.refuse(invalid("an event is not a JSON object"));
    }
    return this.#taken();
  }

  /** Ends the reply because of an event that is not parsed. Its usage is recorded; the client does not get it. */
  #refuseUnparsed({ event }: SseEvent, data: Uint8Array): void {
    const outline = outlineOf(data);
    if (outline) {
      this.read(outline, event);
      this.sink.take();
    }
    this.#ended = false;
    this.refuse(TOO_MANY_NAMES);
  }

  /**
   * The members that may differ in further frames like the last one; undefined if each further frame has to be parsed.
   */
  get varying(): Varying | undefined {
    return this.#last && this.varyingOf(this.#last);
  }

  /**
   * Accounts for `deltas` more frames of that kind, directly after it, which together contain this text. Does what
   * `push` would do, without returning events.
   */
  again(text: string, deltas: number): void {
    this.output.addDeltas(text, deltas);
    this.sink.speaking?.again(text);
  }

  /** Bytes of output so far. */
  get size(): number {
    return this.output.size;
  }

  /** Whether so many more characters can be kept without exceeding a limit. */
  mayKeep(chars: number): boolean {
    return this.sink.mayKeep(chars);
  }

  #taken(): readonly ReplyEvent[] {
    if (this.sink.excess !== undefined) this.refuse(beyondLimit(this.sink.excess));
    return this.sink.take();
  }

  /** The upstream's body has ended: a normal end if the stop reason was seen, else a fault (rule 49). */
  end(): readonly ReplyEvent[] {
    if (this.#ended) return NOTHING;
    if (this.stopSeen || this.#failed !== undefined) this.finish();
    else this.refuse(TRUNCATED);
    return this.#taken();
  }

  /**
   * Ends the reply before the upstream does, as truncated by an output limit.
   * @param usage the usage that is sent to the client; it is not the upstream's count.
   */
  truncate(usage: Usage): readonly ReplyEvent[] {
    if (this.#ended) return NOTHING;
    this.start({ upstreamId: undefined, serviceTier: undefined, createdS: undefined });
    this.sink.emit({ type: "usage-update", usage });
    this.#stop ??= stopFor("output-limit");
    this.finish();
    return this.#taken();
  }

  counts(): AttemptCounts {
    const hasFailed = this.#failed !== undefined || this.failedWithCount;
    const isOver = this.stopSeen || hasFailed || (this.#ended && this.#fault === undefined);
    return {
      usage: this.usage,
      final: isOver && this.usageIsWhole && this.usage !== undefined,
      produced: this.output.counts(),
      ...this.#answered.noted,
    };
  }

  /** Whether the upstream has given its stop reason. */
  protected get stopSeen(): boolean {
    return this.#stop !== undefined;
  }

  /** Records the upstream's stop reason; the last one counts. */
  protected set stop(stop: Stop) {
    this.#stop = stop;
  }

  /** Announces the stop reason to the client's encoder; no block may be open. */
  protected announce(stop: Stop): void {
    this.sink.emit({ type: "reply-stopping", stop: settledStop(stop, this.sink.calls) });
  }

  protected get started(): boolean {
    return this.#started;
  }

  /** The `varying` of a payload that was read. */
  protected abstract varyingOf(payload: JsonObject): Varying | undefined;

  /** Reads one payload; `name` is the frame's `event:` field, "" when there was none. */
  protected abstract read(payload: JsonObject, name: string): void;

  /** Reads chat's terminal marker, which other servers add too. */
  protected abstract readDone(): void;

  /** Ends all blocks that are still open. */
  protected abstract closeBlocks(): void;

  protected start(facts: Omit<Extract<ReplyEvent, { type: "reply-start" }>, "type">): void {
    if (this.#started) return;
    this.#started = true;
    this.sink.emit({ type: "reply-start", ...facts });
  }

  protected countUsage(usage: Usage | undefined): void {
    if (usage === undefined) return;
    this.usage = usage;
    this.sink.emit({ type: "usage-update", usage });
  }

  protected ping(): void {
    if (this.#started) this.sink.emit({ type: "ping" });
  }

  /** Ends the reply. A terminal marker without a stop reason is a normal end. */
  protected finish(): void {
    if (this.#ended) return;
    if (this.#failed !== undefined) {
      this.refuse(brokenOff(this.#failed));
      return;
    }
    this.closeBlocks();
    if (this.sink.excess !== undefined) return; // The frame that exceeded the limit ends in a fault.
    const stop = this.#stop ?? { reason: "end", stopSequence: undefined, refusal: undefined };
    this.sink.emit({ type: "reply-stop", stop: settledStop(stop, this.sink.calls) });
    this.sink.emit({ type: "reply-end" });
    this.#ended = true;
  }

  /** Records that the upstream reported its failure; its usage may still follow before its end. */
  protected failAtEnd(code: string): void {
    this.#failed ??= code;
  }

  /**
   * Ends the reply as failed, with the error that the upstream reported (rule 50).
   * @param details of a messages error, which hold its code.
   */
  protected report(type: unknown, code: unknown, message: unknown, details?: unknown): void {
    this.refuse(reported(type, code, message, undefined, details), message);
  }

  /** Ends the reply as failed. */
  protected refuse(fault: UpstreamFault, message: unknown = fault.reason): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#fault = fault;
    const words = typeof message === "string" && message !== "" ? message : fault.reason;
    this.sink.emit({ type: "reply-error", code: fault.code, message: words.slice(0, MESSAGE_CHARS_MAX) });
  }
}

/** Assembles a whole reply, within the same limits as for streams. */
export function wholeReply(
  items: readonly ReplyItem[],
  stop: Stop,
  facts: Omit<HubReply, "items" | "stop">,
  produced: ProducedCounts,
): DecodedReply | UpstreamFault {
  if (items.length > REPLY_BLOCKS_MAX) return beyondLimit("the reply has too many blocks");
  const calls = items.filter((item) => item.type === "tool-call").length;
  return { reply: { items, stop: settledStop(stop, calls), ...facts }, produced };
}
