/**
 * The slots of one upstream (`max_concurrency`, per process) and who waits for one. A slot that is given back goes to
 * the queue in the same tick, so that a newcomer can never overtake it. Nothing polls.
 */
import type { QueueSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { FairQueue, type Owner } from "./fair-queue.ts";

/** A queued request; it may be in the queues of several upstreams. */
export interface SlotWaiter {
  readonly owner: Owner;
  /** A slot is free, and is this waiter's from now on. It must leave its other queues in the same tick. */
  granted(slots: Slots, slot: Slot): void;
  /** A newcomer whose owner has fewer requests waiting has taken its place in this queue. */
  displaced(slots: Slots): void;
  /** The upstream of this queue is not to be waited for any more: it was found ill, or replaced. */
  dissolved(): void;
}

/** One request in flight. */
export interface Slot {
  /** Gives the slot back; once. @param nowMs the time by the clock's `monotonicMs`, where it has just been read. */
  release(nowMs?: number): void;
}

/** How much the newest service time counts in the average. */
const NEWEST_SHARE = 0.2;

/** The range of `retry-after`, in seconds, that all SDKs obey. */
const RETRY_AFTER_S_MIN = 1;
const RETRY_AFTER_S_MAX = 60;

export class Slots {
  readonly #clock: Clock;
  #max: number;
  #queue: FairQueue<SlotWaiter>;
  #waitMs: number;
  #running = 0;
  /** Sum of the times at which the running ones took their slots: the mean age in one subtraction. */
  #takenAtSumMs = 0;
  #serviceMs: number | undefined = undefined;

  constructor(max: number, queue: QueueSettings, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
    this.#queue = new FairQueue(queue.max);
    this.#waitMs = queue.waitMs;
  }

  /** Takes other bounds: what runs goes on to count, and everybody in the queue looks again. */
  change(max: number, queue: QueueSettings): void {
    const before = this.#queue;
    this.#max = max;
    this.#queue = new FairQueue(queue.max);
    this.#waitMs = queue.waitMs;
    dissolve(before);
  }

  /** Requests in flight; each holds one slot until its body is over. */
  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** How long one may wait here. */
  get waitMs(): number {
    return this.#waitMs;
  }

  hasRoom(): boolean {
    return this.#running < this.#max;
  }

  /** Takes a slot; the caller has looked at `hasRoom` in this very tick. */
  take(): Slot {
    const takenAtMs = this.#clock.monotonicMs();
    this.#running += 1;
    this.#takenAtSumMs += takenAtMs;
    return new HeldSlot(takenAtMs, this);
  }

  /** @returns false when there is no room in the queue for this waiter. */
  enqueue(waiter: SlotWaiter): boolean {
    const out = this.#queue.enter(waiter);
    if (out !== undefined && out !== waiter) out.displaced(this);
    return out !== waiter;
  }

  leaveQueue(waiter: SlotWaiter): void {
    this.#queue.leave(waiter);
  }

  /** Sends everybody in the queue away to look again, in the order of their turns. */
  dissolveQueue(): void {
    dissolve(this.#queue);
  }

  /**
   * When one more could have a slot, were it to queue up after those that wait now: from the time that requests have
   * taken here, those still running included. From 1 to 60 seconds.
   */
  retryAfterS(): number {
    const turnMs = this.#meanServiceMs() / this.#max;
    const seconds = Math.ceil(((this.#queue.length + 1) * turnMs) / 1_000);
    return Math.min(RETRY_AFTER_S_MAX, Math.max(RETRY_AFTER_S_MIN, seconds));
  }

  #meanServiceMs(): number {
    const ageMs = this.#running === 0 ? 0 : this.#clock.monotonicMs() - this.#takenAtSumMs / this.#running;
    return Math.max(this.#serviceMs ?? 0, ageMs);
  }

  /** One of them is free again: called by the slot itself. */
  released(takenAtMs: number, nowMs = this.#clock.monotonicMs()): void {
    const tookMs = nowMs - takenAtMs;
    this.#serviceMs =
      this.#serviceMs === undefined ? tookMs : this.#serviceMs + NEWEST_SHARE * (tookMs - this.#serviceMs);
    this.#running -= 1;
    this.#takenAtSumMs -= takenAtMs;
    if (!this.hasRoom()) return;
    const next = this.#queue.next();
    if (next) next.granted(this, this.take());
  }
}

function dissolve(queue: FairQueue<SlotWaiter>): void {
  // All are taken out first: some of them may queue up here again at once.
  const all: SlotWaiter[] = [];
  for (let one = queue.next(); one !== undefined; one = queue.next()) all.push(one);
  for (const one of all) one.dissolved();
}

class HeldSlot implements Slot {
  readonly #takenAtMs: number;
  /** Undefined once it has been given back. */
  #slots: Slots | undefined;

  constructor(takenAtMs: number, slots: Slots) {
    this.#takenAtMs = takenAtMs;
    this.#slots = slots;
  }

  release(nowMs?: number): void {
    const slots = this.#slots;
    this.#slots = undefined;
    slots?.released(this.#takenAtMs, nowMs);
  }
}
