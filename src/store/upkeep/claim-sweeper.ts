/**
 * Finishes redemptions that were cut off between the claim of a code and the credit of its account. It runs at the
 * start, for those of a process that died, and on a timer, for those of other gateways (docs/failure-model.md invariant
 * 11).
 */

import type { Log } from "../../telemetry/log.ts";
import type { Clock } from "../../values/time.ts";
import { type Store, StoreUnreachableError } from "../contract.ts";

const SWEEP_EVERY_MS = 60_000;
/** Claims that one sweep examines; the others wait for the next sweep. */
const CLAIMS_PER_SWEEP = 100;

interface ClaimSweeper {
  /** Resolves when no sweep is under way and none will follow. */
  stop(): Promise<void>;
}

export function sweepClaims(parts: { store: Pick<Store, "finishClaims">; clock: Clock; log: Log }): ClaimSweeper {
  const { store, clock, log } = parts;
  let stopped = false;
  let cancel = () => {};
  const sweep = async (): Promise<void> => {
    try {
      const finished = await store.finishClaims(CLAIMS_PER_SWEEP);
      if (finished > 0) log.warn({ codes: finished }, "redemptions that were cut off were credited");
    } catch (error) {
      if (!(error instanceof StoreUnreachableError))
        log.warn({ reason: String(error) }, "redemptions that were cut off wait for the store");
    }
    if (!stopped) cancel = clock.after(SWEEP_EVERY_MS, () => (running = sweep()));
  };
  let running = sweep();
  return {
    stop() {
      stopped = true;
      cancel();
      return running;
    },
  };
}
