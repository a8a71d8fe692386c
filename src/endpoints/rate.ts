/**
 * Rate limits per key at the endpoints that read the store but cost nothing and have no other limit. Counted in this
 * process. Memory is bounded: keys seen least recently are evicted.
 */
import type { SideName } from "../accept/routes.ts";
import { type Bucket, drain, take, waitMs } from "../store/buckets.ts";
import { createRecent, type Recent } from "../values/collections/recent.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { Clock } from "../values/time.ts";

/** Requests per minute and key about usage or explanations; also the size of a burst. */
export const SIDE_ASKS_PER_MINUTE = 120;
/**
 * Token counts and catalog reads per minute and key; also the size of a burst. Claude Code sends 20 to 25 counts at
 * once each time it shows its context, in each of a user's sessions.
 */
export const SIDE_COUNTS_PER_MINUTE = 300;
/** Keys remembered at once. */
const SIDE_KEYS_MAX = 10_000;

const MS_PER_S = 1_000;

const ASKS: ReadonlySet<string> = new Set<SideName>(["usage", "explain"]);

/**
 * Two separate limits, one for counts and one for usage and explanations: a client that counts a lot can still ask for
 * its costs.
 */
export class SideRates {
  readonly #asks: SideRate;
  readonly #counts: SideRate;

  constructor(clock: Clock) {
    this.#asks = new SideRate(clock, SIDE_ASKS_PER_MINUTE);
    this.#counts = new SideRate(clock, SIDE_COUNTS_PER_MINUTE);
  }

  /** Takes one request of a key at an endpoint. @returns 429 with the wait if none is left. */
  ask(endpoint: SideName | "models", keyId: string): Refusal | undefined {
    return (ASKS.has(endpoint) ? this.#asks : this.#counts).ask(keyId);
  }
}

export class SideRate {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #buckets: Recent<Bucket>;

  constructor(clock: Clock, perMinute = SIDE_ASKS_PER_MINUTE, keysMax = SIDE_KEYS_MAX) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#buckets = createRecent({ max: keysMax, clock });
  }

  /** Keys remembered now; never above the maximum. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one request of a key. @returns 429 with the wait if none is left. */
  ask(keyId: string): Refusal | undefined {
    const nowMs = this.#clock.monotonicMs();
    const drained = drain(this.#buckets.get(keyId), this.#perMinute, nowMs);
    const wait = waitMs(drained, this.#perMinute, 1, nowMs);
    if (wait > 0) {
      const detail = `The limit is ${this.#perMinute} of these requests per minute and key.`;
      return refusal("requests", { detail }, { retryAfterS: Math.ceil(wait / MS_PER_S) });
    }
    this.#buckets.set(keyId, take(drained, 1));
    return undefined;
  }
}
