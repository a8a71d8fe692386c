/** Limits sign-in attempts, and requests of signed-in owners. Counted in this process, with bounded memory. */
import { isIP } from "node:net";
import { type Bucket, drain, take, waitMs } from "../../store/buckets.ts";
import { createRecent, type Recent } from "../../values/collections/recent.ts";
import type { AccountTag } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";
import { addressBucket } from "../../wire/address.ts";
import { GuessBudget } from "../guess-budget.ts";
import { AdminRefusal } from "../refusal.ts";

/** Failed sign-ins of an address. Only failures count here, because an office shares one address. */
const SIGN_IN_FAILURES = Object.freeze({ failuresPerMinute: 10, failuresPerDay: 200, namesMax: 10_000 });
/** Sign-in attempts, passkey challenges and redirects to a provider of an address, whatever their outcome. */
const SIGN_INS_PER_MINUTE = 60;
/** The same of all addresses together, which bounds the cost of a flood from many addresses. */
const ALL_SIGN_INS_PER_MINUTE = 1_200;
/** Requests of one session. */
export const SESSION_ASKS_PER_MINUTE = 600;
/** Requests of all sessions of an account; it may have 32. */
export const ACCOUNT_ASKS_PER_MINUTE = 1_200;
/**
 * Replaces the address of a client whose front forwards none. All such clients share it, so limits per address do not
 * apply to it: nobody is blocked because of another client.
 */
export const NO_ADDRESS = "unknown";
/** Maximum number of addresses or sessions in memory. */
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

  /**
   * Takes one attempt.
   * @param address anything else than an IP address counts only in the total
   * @throws AdminRefusal 429
   */
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

/** Rates of signed-in owners. */
export class SessionRates {
  readonly #sessions: Rates;
  readonly #accounts: Rates;

  constructor(clock: Clock) {
    this.#sessions = new Rates(clock, SESSION_ASKS_PER_MINUTE);
    this.#accounts = new Rates(clock, ACCOUNT_ASKS_PER_MINUTE);
  }

  /** Called before the store is asked whether the session is still running. @throws AdminRefusal 429 */
  take(sessionId: string): void {
    const wait = this.#sessions.take(sessionId);
    if (wait > 0) throw tooMany("too_many_requests", "This session sends too many requests.", wait);
  }

  /**
   * Called for a running session only: requests of ended sessions must not use up the account's rate.
   * @throws AdminRefusal 429
   */
  takeOfAccount(tag: AccountTag): void {
    const wait = this.#accounts.take(tag);
    if (wait > 0) throw tooMany("too_many_requests", "The sessions of this account send too many requests.", wait);
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

  /** Takes one. @returns 0, or the milliseconds until one is available */
  take(name: string): number {
    const nowMs = this.#clock.monotonicMs();
    const drained = drain(this.#buckets.get(name), this.#perMinute, nowMs);
    const wait = waitMs(drained, this.#perMinute, 1, nowMs);
    if (wait === 0) this.#buckets.set(name, take(drained, 1));
    return wait;
  }
}

/** @param wait milliseconds until a retry */
export function tooMany(code: string, message: string, wait: number): AdminRefusal {
  const seconds = Math.ceil(wait / MS_PER_S);
  return new AdminRefusal(429, code, message, `Wait ${seconds} s.`, { "retry-after": String(seconds) });
}
