/**
 * Limits how often somebody may send a wrong code before their codes are no longer looked up (docs/failure-model.md row
 * 41), and a wrong admin token before they are answered 429. Only failures count. Bounded: a flood of names pushes out
 * those seen least recently.
 */

import { KeyedQueue } from "../values/collections/keyed-queue.ts";
import type { Clock } from "../values/time.ts";

interface GuessLimits {
  readonly failuresPerMinute: number;
  readonly failuresPerDay: number;
  /** Names remembered at once. */
  readonly namesMax: number;
}

const GUESS_LIMITS: GuessLimits = Object.freeze({
  failuresPerMinute: 5,
  failuresPerDay: 20,
  namesMax: 10_000,
});

/** Wrong admin tokens by address. A day has no limit of its own: a program with an old token is no reason to lock out. */
export const TOKEN_GUESS_LIMITS: GuessLimits = Object.freeze({
  failuresPerMinute: 20,
  failuresPerDay: Number.POSITIVE_INFINITY,
  namesMax: 10_000,
});

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Failures since the first one of a span; with the span they are forgotten. */
interface Count {
  failures: number;
  sinceMs: number;
}

export class GuessBudget {
  readonly #clock: Clock;
  readonly #limits: GuessLimits;
  /** In the order of last failure: the first is the one to forget. */
  readonly #names = new Map<string, { minute: Count; day: Count }>();

  constructor(clock: Clock, limits: GuessLimits = GUESS_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Names remembered now; never above `namesMax`. */
  get size(): number {
    return this.#names.size;
  }

  /** Milliseconds until the name is within its limits again; 0 when it is now. */
  waitMs(name: string): number {
    const counts = this.#names.get(name);
    if (counts === undefined) return 0;
    const nowMs = this.#clock.monotonicMs();
    const { failuresPerMinute, failuresPerDay } = this.#limits;
    return Math.max(
      counts.minute.failures >= failuresPerMinute ? counts.minute.sinceMs + MINUTE_MS - nowMs : 0,
      counts.day.failures >= failuresPerDay ? counts.day.sinceMs + DAY_MS - nowMs : 0,
      0,
    );
  }

  /** Counts a failure. @returns whether it was one too many: `waitMs` is above 0 from now on. */
  failed(name: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const counts = this.#names.get(name) ?? { minute: none(nowMs), day: none(nowMs) };
    this.#names.delete(name);
    this.#names.set(name, {
      minute: plusOne(counts.minute, MINUTE_MS, nowMs),
      day: plusOne(counts.day, DAY_MS, nowMs),
    });
    this.#forgetOldest();
    return this.waitMs(name) > 0;
  }

  #forgetOldest(): void {
    if (this.#names.size <= this.#limits.namesMax) return;
    const [oldest] = this.#names.keys();
    if (oldest !== undefined) this.#names.delete(oldest);
  }
}

/** Wrong codes by account, whoever takes them in this process: those of one account one after another, so that each is counted in time. */
export class CodeGuesses extends GuessBudget {
  readonly #turns = new KeyedQueue<unknown>();

  /** Runs the work when all of the account before it has ended. Ends as the work does. */
  inTurn<T>(account: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.of(account, work) as Promise<T>;
  }
}

const none = (nowMs: number): Count => ({ failures: 0, sinceMs: nowMs });

function plusOne(count: Count, spanMs: number, nowMs: number): Count {
  const over = nowMs - count.sinceMs >= spanMs;
  return over ? { failures: 1, sinceMs: nowMs } : { failures: count.failures + 1, sinceMs: count.sinceMs };
}
