/**
 * Bounded memories of what was seen lately, by text: what was used least recently is forgotten first, and what is older than
 * its time. The one entry point of lru-cache.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../time.ts";

interface RecentOptions {
  /** Entries at once. */
  readonly max: number;
  /** How long an entry lives after it was set, milliseconds; without it only `max` bounds it. */
  readonly ttlMs?: number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

export type Recent<V extends object | string | true> = Pick<
  LRUCache<string, V>,
  "get" | "set" | "has" | "delete" | "size"
>;

/** An empty memory. `get` and `set` count as use, `has` does not. */
export function createRecent<V extends object | string | true>({ max, ttlMs, clock }: RecentOptions): Recent<V> {
  // An entry of the instant 0 would live for ever.
  const perf = { now: () => clock.monotonicMs() + 1 };
  const life = ttlMs === undefined ? {} : { ttl: ttlMs, ttlResolution: 0, perf };
  // As `max` it would make room for all entries at once: 7 MB and 40 ms at the start of a gateway that has seen nobody yet.
  return new LRUCache<string, V>({ maxSize: max, sizeCalculation: () => 1, ...life });
}
