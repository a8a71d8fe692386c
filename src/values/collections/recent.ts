/**
 * Bounded caches of recent entries by text: entries that were used least recently are evicted first, and entries expire
 * after their TTL. The only file that uses lru-cache.
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

/** An empty cache. `get` and `set` count as use, `has` does not. */
export function createRecent<V extends object | string | true>({ max, ttlMs, clock }: RecentOptions): Recent<V> {
  // An entry set at time 0 would never expire.
  const perf = { now: () => clock.monotonicMs() + 1 };
  const life = ttlMs === undefined ? {} : { ttl: ttlMs, ttlResolution: 0, perf };
  // With `max`, it would allocate room for all entries at once: 7 MB and 40 ms at the start of a gateway without
  // clients.
  return new LRUCache<string, V>({ maxSize: max, sizeCalculation: () => 1, ...life });
}
