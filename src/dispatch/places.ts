/**
 * The places of one upstream (`max_concurrency`, per process) and who waits for one. A place that is given back goes to
 * the line in the same tick, so that a newcomer can never overtake it. Nothing polls.
 */
import type { QueueSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { Line, type Owner } from "./line.ts";

/** A request in line; it may stand in the lines of several upstreams. */
export interface Waiter {
  readonly owner: Owner;
  /** A place is free, and is this waiter's from now on. It must leave its other lines in the same tick. */
  granted(places: Places, place: Place): void;
  /** It has lost its stand in this line to somebody who had waited for less. */
  displaced(places: Places): void;
  /** The upstream of this line is not to be waited for any more: it was found ill, or replaced. */
  dissolved(): void;
}

/** One request in flight. */
export interface Place {
  /** Gives the place back; once. */
  release(): void;
}

/** How much the newest service time counts in the average. */
const NEWEST_SHARE = 0.2;

/** What a client is told to wait, in seconds: the range that all SDKs obey (clients.md). */
const RETRY_AFTER_S_MIN = 1;
const RETRY_AFTER_S_MAX = 60;

export class Places {
  readonly #max: number;
  readonly #clock: Clock;
  readonly #line: Line<Waiter>;
  readonly #waitMs: number;
  #running = 0;
  /** Sum of the times at which the running ones took their places: the mean age in one subtraction. */
  #takenAtSumMs = 0;
  #serviceMs: number | undefined = undefined;

  constructor(max: number, queue: QueueSettings, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
    this.#line = new Line(queue.max);
    this.#waitMs = queue.waitMs;
  }

  /** Requests in flight; each holds one place until its body is over. */
  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#line.length;
  }

  /** How long one may wait here. */
  get waitMs(): number {
    return this.#waitMs;
  }

  hasRoom(): boolean {
    return this.#running < this.#max;
  }

  /** Takes a place; the caller has looked at `hasRoom` in this very tick. */
  take(): Place {
    const takenAtMs = this.#clock.monotonicMs();
    this.#running += 1;
    this.#takenAtSumMs += takenAtMs;
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.#release(takenAtMs);
      },
    };
  }

  /** @returns false when there is no room in the line for this waiter. */
  lineUp(waiter: Waiter): boolean {
    const out = this.#line.enter(waiter);
    if (out !== undefined && out !== waiter) out.displaced(this);
    return out !== waiter;
  }

  leaveLine(waiter: Waiter): void {
    this.#line.leave(waiter);
  }

  /** Sends everybody in line away to look again, in the order of their turns. */
  dissolveLine(): void {
    // All are taken out first: some of them may line up here again at once.
    const all: Waiter[] = [];
    for (let one = this.#line.next(); one !== undefined; one = this.#line.next()) all.push(one);
    for (const one of all) one.dissolved();
  }

  /**
   * When one more could have a place, were it to line up behind those that wait now: from the time that requests have
   * taken here, those still running included. From 1 to 60 seconds.
   */
  retryAfterS(): number {
    const turnMs = this.#meanServiceMs() / this.#max;
    const seconds = Math.ceil(((this.#line.length + 1) * turnMs) / 1_000);
    return Math.min(RETRY_AFTER_S_MAX, Math.max(RETRY_AFTER_S_MIN, seconds));
  }

  #meanServiceMs(): number {
    const ageMs = this.#running === 0 ? 0 : this.#clock.monotonicMs() - this.#takenAtSumMs / this.#running;
    return Math.max(this.#serviceMs ?? 0, ageMs);
  }

  #release(takenAtMs: number): void {
    const tookMs = this.#clock.monotonicMs() - takenAtMs;
    this.#serviceMs =
      this.#serviceMs === undefined ? tookMs : this.#serviceMs + NEWEST_SHARE * (tookMs - this.#serviceMs);
    this.#running -= 1;
    this.#takenAtSumMs -= takenAtMs;
    if (!this.hasRoom()) return;
    const next = this.#line.next();
    if (next) next.granted(this, this.take());
  }
}
