/** Collects the events of a stream decoder's blocks, and counts them against the limits. */
import type { ReplyPlan } from "../hub.ts";
import type { BlockKey, ReplyEvent } from "../hub-reply.ts";
import { type Ids, ReplyCallIds } from "./tool-call.ts";

/** The most blocks, items and parts of one reply, streamed or whole (docs/failure-model.md row 68). */
export const REPLY_BLOCKS_MAX = 4_096;
/** The same for a whole reply that passes through; more than any server sends, and reading so many takes 50 ms. */
export const REPLY_BLOCKS_PASSED_MAX = 16_384;
/** The most UTF-16 units of reasoning, tool input, ids and names that are kept, in the whole reply. */
export const REPLY_KEPT_CHARS_MAX = 16 * 1024 * 1024;

/** A block that can take more text. */
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
  /** The block that got text last. */
  speaking: Speaking | undefined;

  constructor(plan: ReplyPlan, ids: Ids) {
    this.plan = plan;
    this.callIds = new ReplyCallIds(plan, ids);
  }

  /** Which limit is exceeded, if any. */
  get excess(): string | undefined {
    return this.#excess;
  }

  /** Number of tool calls that the client has got. */
  get calls(): number {
    return this.#calls;
  }

  /** An event after an excess is dropped: nobody gets more of such a reply, and one frame may contain much more of it. */
  emit(event: ReplyEvent): void {
    if (this.#excess !== undefined && event.type !== "reply-error") return;
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

  /** Whether so many more characters can be kept in memory. */
  mayKeep(chars: number): boolean {
    return this.#keptChars + chars <= REPLY_KEPT_CHARS_MAX;
  }

  /** Records that a limit is exceeded; the decoder then ends the stream. */
  exceed(reason: string): void {
    this.#excess ??= reason;
  }

  /** Returns the events since the last call, in order. */
  take(): readonly ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
