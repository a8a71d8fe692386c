/**
 * Puts interleaved blocks in sequence (docs/translation-rules.md rule 56). The block that began first is sent live.
 * Blocks that began later are queued and follow in the order of their beginnings. So clients that follow a stream block
 * by block get whole blocks, even if the upstream mixed them.
 */
import type { BlockEvent, BlockKey, ReplyEvent } from "./hub-reply.ts";
import { ObjectEnd } from "./reply/gathered.ts";

/** The most characters in the queue; a stream that needs more is invalid. */
export const QUEUED_CHARS_MAX = 16 * 1024 * 1024;

interface QueuedBlock {
  readonly key: BlockKey;
  /** Events that wait for the block's turn. */
  readonly queue: BlockEvent[];
  ended: boolean;
  /** The arguments so far of a function call that is live; undefined for everything else. */
  call: { text: string; readonly objectEnd: ObjectEnd } | undefined;
}

export class Sequencer {
  readonly #waiting = new Map<BlockKey, QueuedBlock>();
  /** Calls that were closed here because their arguments were complete, before the upstream closed them. */
  readonly #closed = new Set<BlockKey>();
  #live: QueuedBlock | undefined;
  #queuedChars = 0;

  /** True once the queue is over its limit; from then on nothing more is returned. */
  get overflowed(): boolean {
    return this.#queuedChars > QUEUED_CHARS_MAX;
  }

  /** Whether this block is live. */
  isLive(key: BlockKey): boolean {
    return this.#live?.key === key;
  }

  /** Takes the next event; returns the events that may be sent now. Events outside of blocks pass at once. */
  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (this.overflowed) return [];
    if (!("key" in event)) return [event];
    if (this.#closed.has(event.key)) return [];
    const out: ReplyEvent[] = [];
    this.#place(event, out);
    this.#advance(out);
    return out;
  }

  #place(event: BlockEvent, out: ReplyEvent[]): void {
    if (this.#live === undefined) this.#live = newBlock(event.key);
    if (event.key === this.#live.key) {
      this.#give(this.#live, event, out);
      return;
    }
    let block = this.#waiting.get(event.key);
    if (!block) {
      block = newBlock(event.key);
      this.#waiting.set(event.key, block);
    }
    block.queue.push(event);
    this.#queuedChars += charsIn(event);
  }

  #give(block: QueuedBlock, event: BlockEvent, out: ReplyEvent[]): void {
    out.push(event);
    // Only the upstream knows where free text ends.
    if (event.type === "tool-start" && event.tool.kind !== "custom") {
      block.call = { text: "", objectEnd: new ObjectEnd() };
    }
    if (event.type === "tool-delta" && block.call) {
      block.call.text += event.input;
      block.call.objectEnd.feed(event.input);
    }
    if (event.type === "image" || event.type.endsWith("-end")) block.ended = true;
  }

  /** Moves on to the next block while the live one is complete and another is queued. */
  #advance(out: ReplyEvent[]): void {
    while (this.#live !== undefined) {
      if (!this.#live.ended && !this.#closeComplete(this.#live, out)) return;
      this.#live = this.#next(out);
    }
  }

  /** Closes a call whose arguments are complete, so that the next block need not wait for the upstream to close it. */
  #closeComplete({ key, call }: QueuedBlock, out: ReplyEvent[]): boolean {
    if (this.#waiting.size === 0 || !call?.objectEnd.isComplete) return false;
    this.#closed.add(key);
    out.push({ type: "tool-end", key, input: call.text });
    return true;
  }

  #next(out: ReplyEvent[]): QueuedBlock | undefined {
    for (const [key, block] of this.#waiting) {
      this.#waiting.delete(key);
      for (const event of block.queue) {
        this.#queuedChars -= charsIn(event);
        this.#give(block, event, out);
      }
      block.queue.length = 0;
      return block;
    }
    return undefined;
  }
}

function newBlock(key: BlockKey): QueuedBlock {
  return { key, queue: [], ended: false, call: undefined };
}

/** The size of an event in the queue. Events without text count too, so that a flood of them is bounded. */
function charsIn(event: BlockEvent): number {
  if ("text" in event) return 1 + event.text.length;
  if ("input" in event) return 1 + event.input.length;
  if ("url" in event) return 1 + event.url.length;
  return 1;
}
