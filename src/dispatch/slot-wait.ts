/** A request that waits for a slot at any of several full upstreams; it takes the first free one. */
import type { Clock } from "../values/time.ts";
import type { Owner } from "./upstream/fair-queue.ts";
import type { Slot, Slots, SlotWaiter } from "./upstream/slots.ts";

/**
 * `granted`: the slot is the caller's. `again`: one of the upstreams is no longer worth waiting for, choose again.
 * `refused`: no room in any queue, or waited too long; the seconds say when to retry. `gone`: the client has
 * disconnected.
 */
type Waited =
  | { readonly kind: "granted"; readonly at: Slots; readonly slot: Slot }
  | { readonly kind: "again" }
  | { readonly kind: "refused"; readonly retryAfterS: number }
  | { readonly kind: "gone" };

interface WaitOptions {
  readonly owner: Owner;
  /** On the clock's `monotonicMs`. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Waits in the queues of all these upstreams, none of which has a free slot. Never rejects. */
export function waitForSlot(queues: readonly Slots[], options: WaitOptions): Promise<Waited> {
  return new Promise((resolve) => new Wait(queues, options, resolve).start());
}

class Wait implements SlotWaiter {
  readonly owner: Owner;
  readonly #options: WaitOptions;
  readonly #resolve: (waited: Waited) => void;
  readonly #all: readonly Slots[];
  readonly #queues: Set<Slots>;
  #cancelTimer: () => void = () => {};

  constructor(queues: readonly Slots[], options: WaitOptions, resolve: (waited: Waited) => void) {
    this.owner = options.owner;
    this.#options = options;
    this.#resolve = resolve;
    this.#all = queues;
    this.#queues = new Set(queues);
  }

  start(): void {
    const { clock, untilMs, signal } = this.#options;
    const restMs = untilMs - clock.monotonicMs();
    if (restMs <= 0) {
      this.#refuse();
      return;
    }
    for (const slots of this.#all) if (!slots.enqueue(this)) this.#queues.delete(slots);
    if (this.#queues.size === 0) {
      this.#refuse();
      return;
    }
    signal.addEventListener("abort", this.#clientGone, { once: true });
    this.#cancelTimer = clock.after(restMs, () => this.#refuse());
  }

  granted(at: Slots, slot: Slot): void {
    this.#queues.delete(at);
    this.#end({ kind: "granted", at, slot });
  }

  displaced(slots: Slots): void {
    this.#queues.delete(slots);
    if (this.#queues.size === 0) this.#refuse();
  }

  dissolved(): void {
    this.#end({ kind: "again" });
  }

  #refuse(): void {
    // The request's own queue position must not count as one more in front of it.
    this.#leaveQueues();
    this.#end({ kind: "refused", retryAfterS: Math.min(...this.#all.map((slots) => slots.retryAfterS())) });
  }

  readonly #clientGone = (): void => this.#end({ kind: "gone" });

  #end(waited: Waited): void {
    this.#leaveQueues();
    this.#cancelTimer();
    this.#options.signal.removeEventListener("abort", this.#clientGone);
    this.#resolve(waited);
  }

  #leaveQueues(): void {
    for (const slots of this.#queues) slots.leaveQueue(this);
    this.#queues.clear();
  }
}
