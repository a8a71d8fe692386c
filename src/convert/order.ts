/**
 * Asserts the order of reply events as they pass, with booleans and asserts, after undici's decorator handler. A wrong
 * order is a defect of a decoder, never of an upstream, because decoders must keep the order for any input.
 */
import assert from "node:assert/strict";
import type { BlockKey, ReplyEvent } from "./hub-reply.ts";

type BlockKind = "text" | "refusal" | "reasoning" | "tool";

interface OpenBlock {
  readonly kind: BlockKind;
  /** UTF-16 units of its deltas so far. */
  chars: number;
}

/** Checks a decoder's output; each event passes through `see` once. */
export class ReplyOrder {
  #started = false;
  #stopped = false;
  #ended = false;
  #failed = false;
  readonly #open = new Map<BlockKey, OpenBlock>();
  readonly #closed = new Set<BlockKey>();

  /** True once `reply-end` or `reply-error` has passed. */
  get ended(): boolean {
    return this.#ended || this.#failed;
  }

  /**
   * Looks at one event.
   * @returns the event.
   * @throws AssertionError when it is out of order.
   */
  see(event: ReplyEvent): ReplyEvent {
    assert(!this.#ended && !this.#failed, `${event.type} after the end`);
    if (event.type === "reply-error") {
      this.#failed = true;
      return event;
    }
    assert(this.#started || event.type === "reply-start", `${event.type} before reply-start`);
    assert(!this.#stopped || event.type === "reply-end", `${event.type} after reply-stop`);
    this.#step(event);
    return event;
  }

  #step(event: Exclude<ReplyEvent, { type: "reply-error" }>): void {
    switch (event.type) {
      case "reply-start":
        assert(!this.#started, "a second reply-start");
        this.#started = true;
        return;
      case "usage-update":
      case "ping":
        return;
      case "reply-stopping":
        assert.equal(this.#open.size, 0, "reply-stopping while a block is open");
        return;
      case "reply-stop":
        assert.equal(this.#open.size, 0, "reply-stop while a block is open");
        this.#stopped = true;
        return;
      case "reply-end":
        assert(this.#stopped, "reply-end without reply-stop");
        this.#ended = true;
        return;
      default:
        this.#stepBlock(event);
    }
  }

  #stepBlock(event: Extract<ReplyEvent, { key: BlockKey }>): void {
    if (event.type === "image") {
      assert(!this.#open.has(event.key) && !this.#closed.has(event.key), `block ${event.key} opens twice`);
      this.#closed.add(event.key);
      return;
    }
    const [kind, step] = event.type.split("-") as [BlockKind, "start" | "delta" | "citation" | "end"];
    if (step === "start") {
      assert(!this.#open.has(event.key) && !this.#closed.has(event.key), `block ${event.key} opens twice`);
      this.#open.set(event.key, { kind, chars: 0 });
      return;
    }
    const block = this.#open.get(event.key);
    assert(block !== undefined, `${event.type} of block ${event.key}, which is not open`);
    assert.equal(block.kind, kind, `${event.type} of a ${block.kind} block`);
    if (event.type === "tool-delta") block.chars += event.input.length;
    if (step !== "end") return;
    if (event.type === "tool-end" && block.chars > 0) {
      assert.equal(event.input.length, block.chars, "the input of a call is not what its deltas were");
    }
    this.#open.delete(event.key);
    this.#closed.add(event.key);
  }
}
