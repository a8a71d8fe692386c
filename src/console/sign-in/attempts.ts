/** How often somebody may try to get in, and how often who is in may ask. Counted in this process, and bounded. */
import { isIP } from "node:net";
import { type Bucket, drain, take, waitMs } from "../../store/buckets.ts";
import { createRecent, type Recent } from "../../values/collections/recent.ts";
import type { AccountTag } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";
import { addressBucket } from "../../wire/address.ts";
import { GuessBudget } from "../guess-budget.ts";
import { AdminRefusal } from "../refusal.ts";

/** Of an address, and only what failed: an office shares one. */
const SIGN_IN_FAILURES = Object.freeze({ failuresPerMinute: 10, failuresPerDay: 200, namesMax: 10_000 });
/** Of an address, whatever became of them. */
const SIGN_INS_PER_MINUTE = 60;
/** Of all addresses together: what a flood from many of them may cost. */
const ALL_SIGN_INS_PER_MINUTE = 1_200;
/** Requests of one session. */
export const SESSION_ASKS_PER_MINUTE = 600;
/** Requests of all sessions of an account: it may have 32. */
export const ACCOUNT_ASKS_PER_MINUTE = 1_200;
/**
 * In place of the address of who came through a front that named nobody: it is everybody's, so nobody is held back for what
 * another one does.
 */
export const NO_ADDRESS = "unknown";
/** Addresses or sessions remembered at once. */
const NAMES_MAX = 10_000;
const MS_PER_S = 1_000;

export class Attempts {
  readonly #failures: GuessBudget;
  readonly #each: Rates;
  readonly #all: Rates;

  constructor(clock: Clock) {
    this.#failures = new GuessBudget(clock, SIGN_IN_FAILURES);
    this.#each = new Rates(clock, SIGN_INS_PER_MINUTE);
    this.#all = new Rates(clock, ALL_SIGN_INS_PER_MINUTE);
  }

  /** Takes one attempt. @param address what is none is everybody's. @throws AdminRefusal 429 */
  take(address: string): void {
    const wait = (isIP(address) === 0 ? 0 : this.#waitOf(addressBucket(address))) || this.#all.take("all");
    if (wait > 0) throw tooMany("too_many_attempts", "There were too many attempts to sign in.", wait);
  }

  #waitOf(bucket: string): number {
    return this.#failures.waitMs(bucket) || this.#each.take(bucket);
  }

  failed(address: string): void {
    if (isIP(address) !== 0) this.#failures.failed(addressBucket(address));
  }
}

/** What those who are in ask. */
export class SessionRates {
  readonly #sessions: Rates;
  readonly #accounts: Rates;

  constructor(clock: Clock) {
    this.#sessions = new Rates(clock, SESSION_ASKS_PER_MINUTE);
    this.#accounts = new Rates(clock, ACCOUNT_ASKS_PER_MINUTE);
  }

  /** Before the store is asked whether the session still runs. @throws AdminRefusal 429 */
  take(sessionId: string): void {
    const wait = this.#sessions.take(sessionId);
    if (wait > 0) throw tooMany("too_many_requests", "This session asks too often.", wait);
  }

  /** Of a session that runs: whose session was ended holds the account's others back by nothing. @throws AdminRefusal 429 */
  takeOfAccount(tag: AccountTag): void {
    const wait = this.#accounts.take(tag);
    if (wait > 0) throw tooMany("too_many_requests", "The sessions of this account ask too often.", wait);
  }
}

class Rates {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #buckets: Recent<Bucket>;

  constructor(clock: Clock, perMinute: number) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#buckets = createRecent({ max: NAMES_MAX, clock });
  }

  /** Takes one. @returns 0, or milliseconds until there is one. */
  take(name: string): number {
    const nowMs = this.#clock.monotonicMs();
    const drained = drain(this.#buckets.get(name), this.#perMinute, nowMs);
    const wait = waitMs(drained, this.#perMinute, 1, nowMs);
    if (wait === 0) this.#buckets.set(name, take(drained, 1));
    return wait;
  }
}

/** @param wait milliseconds until it may be asked again. */
export function tooMany(code: string, message: string, wait: number): AdminRefusal {
  const seconds = Math.ceil(wait / MS_PER_S);
  return new AdminRefusal(429, code, message, `Wait ${seconds} s.`, { "retry-after": String(seconds) });
}
