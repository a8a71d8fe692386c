/** Where a stream decoder's blocks put their events, and where they are counted against the limits. */
import type { BlockKey, ReplyEvent, ReplyPlan } from "../hub.ts";
import { type Ids, ReplyCallIds } from "./tool-call.ts";

/** Most blocks, items and parts of one reply, streamed or whole (docs/failure-model.md row 68). */
export const REPLY_BLOCKS_MAX = 4_096;
/** The same of a whole reply that passes through: more than any server has, and so many take 50 ms to look at. */
export const REPLY_BLOCKS_PASSED_MAX = 16_384;
/** Most UTF-16 units of reasoning, tool input, ids and names that are kept, for the whole reply together. */
export const REPLY_KEPT_CHARS_MAX = 16 * 1024 * 1024;

/** A block that goes on. */
interface Speaking {
  again(text: string): void;
}

export class EventSink {
  readonly plan: ReplyPlan;
  readonly callIds: ReplyCallIds;
  #events: ReplyEvent[] = [];
  #blocks = 0;
  #keptChars = 0;
  #calls = 0;
  #excess: string | undefined;
  /** The block that was given a text last. */
  speaking: Speaking | undefined;

  constructor(plan: ReplyPlan, ids: Ids) {
    this.plan = plan;
    this.callIds = new ReplyCallIds(plan, ids);
  }

  /** What is over its limit, if anything. */
  get excess(): string | undefined {
    return this.#excess;
  }

  /** Tool calls that the client has got. */
  get calls(): number {
    return this.#calls;
  }

  emit(event: ReplyEvent): void {
    if (event.type === "tool-start") this.#calls++;
    this.#events.push(event);
  }

  /** Counts one more block, item or part. @returns its key. */
  claim(): BlockKey {
    this.#blocks++;
    if (this.#blocks > REPLY_BLOCKS_MAX) this.exceed("the reply has too many blocks");
    return String(this.#blocks);
  }

  /** Counts text that stays in memory, until its block ends or longer. */
  keep(text: string | undefined): void {
    this.#keptChars += text?.length ?? 0;
    if (this.#keptChars > REPLY_KEPT_CHARS_MAX) this.exceed("the reply has too much reasoning, tool input or names");
  }

  /** Whether so much more text may stay in memory. */
  mayKeep(chars: number): boolean {
    return this.#keptChars + chars <= REPLY_KEPT_CHARS_MAX;
  }

  /** Notes that a limit is passed; the decoder ends the stream with it. */
  exceed(reason: string): void {
    this.#excess ??= reason;
  }

  /** Gives the events since the last call, in order. */
  take(): readonly ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
