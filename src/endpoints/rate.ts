/**
 * How often a key may ask at the endpoints that read the store and cost nobody anything, so that nothing else holds them
 * back. Counted in this process. Bounded: many keys push out those seen least recently.
 */
import type { SideName } from "../accept/routes.ts";
import { type Bucket, drain, take, waitMs } from "../store/buckets.ts";
import { createRecent, type Recent } from "../values/collections/recent.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { Clock } from "../values/time.ts";

/** Questions of a key within a minute about its usage, or about what would become of a request; so many at once, too. */
export const SIDE_ASKS_PER_MINUTE = 120;
/**
 * Token counts and reads of the catalog, of a key within a minute; so many at once, too. Claude Code asks for 20 to 25
 * counts at once each time that it shows its context, in each of a user's sessions.
 */
export const SIDE_COUNTS_PER_MINUTE = 300;
/** Keys remembered at once. */
const SIDE_KEYS_MAX = 10_000;

const MS_PER_S = 1_000;

const ASKS: ReadonlySet<string> = new Set<SideName>(["usage", "explain"]);

/** Two separate limits, for counts and for questions: a client that counts a lot may still ask what that has cost. */
export class SideRates {
  readonly #asks: SideRate;
  readonly #counts: SideRate;

  constructor(clock: Clock) {
    this.#asks = new SideRate(clock, SIDE_ASKS_PER_MINUTE);
    this.#counts = new SideRate(clock, SIDE_COUNTS_PER_MINUTE);
  }

  /** Takes one question of a key at an endpoint. @returns 429 with the wait when there is none left. */
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

  /** Takes one question of a key. @returns 429 with the wait when there is none left. */
  ask(keyId: string): Refusal | undefined {
    const nowMs = this.#clock.monotonicMs();
    const drained = drain(this.#buckets.get(keyId), this.#perMinute, nowMs);
    const wait = waitMs(drained, this.#perMinute, 1, nowMs);
    if (wait > 0) {
      const detail = `The limit is ${this.#perMinute} of these questions per minute and key.`;
      return refusal("requests", { detail }, { retryAfterS: Math.ceil(wait / MS_PER_S) });
    }
    this.#buckets.set(keyId, take(drained, 1));
    return undefined;
  }
}
