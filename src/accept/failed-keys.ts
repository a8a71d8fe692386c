/**
 * Counts failed authentications by client address (docs/failure-model.md row 30). Above the limit, the 401 becomes a
 * 429, and lookups of keys that were not valid recently are limited per second. Other clients of the address are not
 * affected: keys that were valid recently are not counted here, and a revoked key is not a failure. Memory is bounded:
 * a flood of addresses evicts those seen least recently.
 */

import { createRecent, type Recent } from "../values/collections/recent.ts";
import type { Clock } from "../values/time.ts";
import { addressBucket } from "../wire/address.ts";

interface FailedKeyLimits {
  readonly failuresPerMinute: number;
  readonly lookUpsPerSecond: number;
  /** Addresses remembered at once. */
  readonly addressesMax: number;
}

export const FAILED_KEY_LIMITS: FailedKeyLimits = Object.freeze({
  failuresPerMinute: 20,
  lookUpsPerSecond: 50,
  addressesMax: 10_000,
});

const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;

interface AddressFailures {
  failures: number;
  failuresSinceMs: number;
  lookUps: number;
  lookUpsSinceMs: number;
}

export class FailedKeys {
  readonly #clock: Clock;
  readonly #limits: FailedKeyLimits;
  readonly #entries: Recent<AddressFailures>;

  constructor(clock: Clock, limits: FailedKeyLimits = FAILED_KEY_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
    this.#entries = createRecent({ max: limits.addressesMax, clock });
  }

  /** Addresses remembered now; never above `addressesMax`. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Records a failed authentication.
   * @param address a trusted client address. Without one nothing is counted, because all clients would share the count.
   * @returns if the address is over the limit, the seconds until it is free again: answer `bad_keys` with them.
   */
  failed(address: string | undefined): number | undefined {
    if (address === undefined) return undefined;
    const entry = this.#entryOf(addressBucket(address));
    entry.failures += 1;
    return this.#waitS(entry);
  }

  /** The same as `failed` returns for the address, but without recording a failure. */
  waitS(address: string | undefined): number | undefined {
    const entry = address === undefined ? undefined : this.#entries.get(addressBucket(address));
    return entry && this.#isOver(entry) ? this.#waitS(entry) : undefined;
  }

  /**
   * Whether a well-formed key from this address, not known to have been valid, may be looked up in the store now.
   * Always true for addresses below their limit of failures; lookups of the others are counted.
   */
  mayLookUp(address: string | undefined): boolean {
    if (address === undefined) return true;
    const bucket = addressBucket(address);
    const known = this.#entries.get(bucket);
    if (known === undefined || !this.#isOver(known)) return true;
    const entry = this.#entryOf(bucket);
    entry.lookUps += 1;
    return entry.lookUps <= this.#limits.lookUpsPerSecond;
  }

  #waitS(entry: AddressFailures): number | undefined {
    if (entry.failures <= this.#limits.failuresPerMinute) return undefined;
    return Math.ceil((entry.failuresSinceMs + MINUTE_MS - this.#clock.monotonicMs()) / SECOND_MS);
  }

  #isOver(entry: AddressFailures): boolean {
    const recent = this.#clock.monotonicMs() - entry.failuresSinceMs < MINUTE_MS;
    return recent && entry.failures > this.#limits.failuresPerMinute;
  }

  #entryOf(bucket: string): AddressFailures {
    const nowMs = this.#clock.monotonicMs();
    const entry = this.#entries.get(bucket) ?? {
      failures: 0,
      failuresSinceMs: nowMs,
      lookUps: 0,
      lookUpsSinceMs: nowMs,
    };
    this.#entries.set(bucket, entry);
    if (nowMs - entry.failuresSinceMs >= MINUTE_MS) {
      entry.failures = 0;
      entry.failuresSinceMs = nowMs;
    }
    if (nowMs - entry.lookUpsSinceMs >= SECOND_MS) {
      entry.lookUps = 0;
      entry.lookUpsSinceMs = nowMs;
    }
    return entry;
  }
}
