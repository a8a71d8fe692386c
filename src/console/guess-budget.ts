/**
 * Limits failed attempts: how many wrong codes an account may send before its codes are no longer looked up
 * (docs/failure-model.md row 41), and how many wrong admin tokens an address may send before it gets 429. Only failures
 * count. Memory is bounded: a flood of names evicts those that failed least recently.
 */

import { KeyedQueue } from "../values/collections/keyed-queue.ts";
import type { Clock } from "../values/time.ts";

interface GuessLimits {
  readonly failuresPerMinute: number;
  readonly failuresPerDay: number;
  /** Maximum number of names in memory. */
  readonly namesMax: number;
}

const GUESS_LIMITS: GuessLimits = Object.freeze({
  failuresPerMinute: 5,
  failuresPerDay: 20,
  namesMax: 10_000,
});

/**
 * Wrong admin tokens by address. There is no separate limit per day: a program with an old token must not lock out its
 * address for a day.
 */
export const TOKEN_GUESS_LIMITS: GuessLimits = Object.freeze({
  failuresPerMinute: 20,
  failuresPerDay: Number.POSITIVE_INFINITY,
  namesMax: 10_000,
});

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Failures since the first one of a span. They are forgotten when the span ends. */
interface Count {
  failures: number;
  sinceMs: number;
}

export class GuessBudget {
  readonly #clock: Clock;
  readonly #limits: GuessLimits;
  /** Ordered by last failure: the first one is evicted first. */
  readonly #names = new Map<string, { minute: Count; day: Count }>();

  constructor(clock: Clock, limits: GuessLimits = GUESS_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Number of names in memory; never above `namesMax`. */
  get size(): number {
    return this.#names.size;
  }

  /** Milliseconds until the name is within its limits again; 0 if it is now. */
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

  /** Counts a failure. @returns whether it has exceeded a limit: `waitMs` is above 0 from now on */
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

/**
 * Wrong codes by account, for all routes of this process that redeem codes. The redemptions of one account run one
 * after another, so that each failure is counted before the next attempt.
 */
export class CodeGuesses extends GuessBudget {
  readonly #turns = new KeyedQueue<unknown>();

  /** Runs the work after all earlier work of the account has ended. Resolves or rejects as the work does. */
  inTurn<T>(account: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.of(account, work) as Promise<T>;
  }
}

const none = (nowMs: number): Count => ({ failures: 0, sinceMs: nowMs });

function plusOne(count: Count, spanMs: number, nowMs: number): Count {
  const over = nowMs - count.sinceMs >= spanMs;
  return over ? { failures: 1, sinceMs: nowMs } : { failures: count.failures + 1, sinceMs: count.sinceMs };
}
