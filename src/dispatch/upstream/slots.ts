/**
 * The slots of one upstream (`max_concurrency`, per process) and the requests that wait for one. A released slot goes
 * to the queue in the same tick, so that a new request can never overtake it. Nothing polls.
 */
import type { QueueSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { FairQueue, type Owner } from "./fair-queue.ts";

/** A queued request; it may be in the queues of several upstreams. */
export interface SlotWaiter {
  readonly owner: Owner;
  /** This waiter gets a slot. It must leave its other queues in the same tick. */
  granted(slots: Slots, slot: Slot): void;
  /** A new request whose owner has fewer requests waiting has taken its position in this queue. */
  displaced(slots: Slots): void;
  /** The upstream of this queue is no longer worth waiting for: it was ejected, or replaced. */
  dissolved(): void;
}

/** One request in flight. */
export interface Slot {
  /** Releases the slot; once. @param nowMs the time by the clock's `monotonicMs`, if it has just been read. */
  release(nowMs?: number): void;
}

/** For what needs no slot. */
export const NO_SLOT: Slot = { release() {} };

/** Weight of the newest service time in the average. */
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
  /** Sum of the times at which the running requests took their slots: gives the mean age with one subtraction. */
  #takenAtSumMs = 0;
  #serviceMs: number | undefined = undefined;

  constructor(max: number, queue: QueueSettings, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
    this.#queue = new FairQueue(queue.max);
    this.#waitMs = queue.waitMs;
  }

  /** Applies new limits: running requests still count, and all queued requests choose again. */
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

  /** How long a request may wait here. */
  get waitMs(): number {
    return this.#waitMs;
  }

  hasRoom(): boolean {
    return this.#running < this.#max;
  }

  /** Takes a slot; the caller has checked `hasRoom` in this same tick. */
  take(): Slot {
    const takenAtMs = this.#clock.monotonicMs();
    this.#running += 1;
    this.#takenAtSumMs += takenAtMs;
    return new HeldSlot(takenAtMs, this);
  }

  /** @returns false if there is no room in the queue for this waiter. */
  enqueue(waiter: SlotWaiter): boolean {
    const out = this.#queue.enter(waiter);
    if (out !== undefined && out !== waiter) out.displaced(this);
    return out !== waiter;
  }

  leaveQueue(waiter: SlotWaiter): void {
    this.#queue.leave(waiter);
  }

  /** Makes all queued requests choose again, in the order of their turns. */
  dissolveQueue(): void {
    dissolve(this.#queue);
  }

  /**
   * When one more request could have a slot if it queued now: estimated from the service times here, including requests
   * that are still running. From 1 to 60 seconds.
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

  /** A slot is free again; called by the slot itself. */
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
  // All are removed first, because some of them may queue here again at once.
  const all: SlotWaiter[] = [];
  for (let one = queue.next(); one !== undefined; one = queue.next()) all.push(one);
  for (const one of all) one.dissolved();
}

class HeldSlot implements Slot {
  readonly #takenAtMs: number;
  /** Undefined once it has been released. */
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
