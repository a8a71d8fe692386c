/**
 * Puts interleaved blocks one after the other (docs/translation-rules.md rule 56). The block that began first goes out
 * live; what began after it waits, and follows in the order of its beginnings. Clients that follow a stream block by
 * block get whole blocks, even if the upstream mixed them.
 */
import type { BlockEvent, BlockKey, ReplyEvent } from "./hub.ts";
import { ObjectEnd } from "./reply/gathered.ts";

/** The most characters that may wait for their turn; a stream that needs more is not believed. */
export const QUEUED_CHARS_MAX = 16 * 1024 * 1024;

interface QueuedBlock {
  readonly key: BlockKey;
  /** Events that wait for the block's turn. */
  readonly queue: BlockEvent[];
  ended: boolean;
  /** The arguments so far of a function call whose turn it is; undefined for everything else. */
  call: { text: string; readonly objectEnd: ObjectEnd } | undefined;
}

export class Sequencer {
  readonly #waiting = new Map<BlockKey, QueuedBlock>();
  /** Calls that were closed here because their arguments were complete, before the upstream closed them. */
  readonly #closed = new Set<BlockKey>();
  #live: QueuedBlock | undefined;
  #queuedChars = 0;

  /** True once more waits than is believed; nothing more is given from then on. */
  get overflowed(): boolean {
    return this.#queuedChars > QUEUED_CHARS_MAX;
  }

  /** Whether it is this block's turn. */
  isLive(key: BlockKey): boolean {
    return this.#live?.key === key;
  }

  /** Takes the next event; gives those whose turn has come. Events outside of blocks pass at once. */
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
    // Where free text ends is known to nobody but the upstream.
    if (event.type === "tool-start" && event.tool.kind !== "custom") {
      block.call = { text: "", objectEnd: new ObjectEnd() };
    }
    if (event.type === "tool-delta" && block.call) {
      block.call.text += event.input;
      block.call.objectEnd.feed(event.input);
    }
    if (event.type === "image" || event.type.endsWith("-end")) block.ended = true;
  }

  /** Goes on to the next block as long as the live one is done and another waits. */
  #advance(out: ReplyEvent[]): void {
    while (this.#live !== undefined) {
      if (!this.#live.ended && !this.#closeComplete(this.#live, out)) return;
      this.#live = this.#next(out);
    }
  }

  /** Closes a call in whose arguments nothing can be missing, so that the next block need not wait for the end. */
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

/** What an event weighs in the queue; those without text have a weight too, so that a flood of them is bounded. */
function charsIn(event: BlockEvent): number {
  if ("text" in event) return 1 + event.text.length;
  if ("input" in event) return 1 + event.input.length;
  if ("url" in event) return 1 + event.url.length;
  return 1;
}
