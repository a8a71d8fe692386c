/** A store whose operations on the path of requests are timed for `store_seconds`. */

import type { Metrics } from "../../telemetry/metrics.ts";
import type { Clock } from "../../values/time.ts";
import type { Store } from "../contract.ts";
import { overlay } from "../overlay.ts";

const MS_PER_S = 1_000;

/** Wraps a store; every operation but the timed ones is the store's own. */
export function timedStore(store: Store, metrics: Metrics, clock: Clock): Store {
  const timed = <A extends readonly unknown[], R>(operation: string, call: (...ask: A) => Promise<R>) => {
    return async (...ask: A): Promise<R> => {
      const startedMs = clock.monotonicMs();
      try {
        return await call(...ask);
      } finally {
        metrics.storeSeconds.observe({ operation }, (clock.monotonicMs() - startedMs) / MS_PER_S);
      }
    };
  };
  return overlay(store, {
    readKey: timed("readKey", (...ask: Parameters<Store["readKey"]>) => store.readKey(...ask)),
    admit: timed("admit", (ask: Parameters<Store["admit"]>[0]) => store.admit(ask)),
    extend: timed("extend", (ask: Parameters<Store["extend"]>[0]) => store.extend(ask)),
    settle: timed("settle", (ask: Parameters<Store["settle"]>[0]) => store.settle(ask)),
  });
}
