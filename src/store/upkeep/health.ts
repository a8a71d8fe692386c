/** Whether the store answers, for readiness and metrics: checked on a timer, outside the request path. */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Clock } from "../../values/time.ts";
import { type Store, StoreError, StoreUnreachableError } from "../contract.ts";
import type { OutageLog } from "./outage-log.ts";

const CHECK_EVERY_MS = 1_000;
/**
 * After this long without an answer, a store that has answered before makes the gateway not ready
 * (docs/failure-model.md invariant 28).
 */
const UNREADY_AFTER_MS = 5_000;

interface StoreHealth {
  /** Why the gateway is not ready because of its store; empty while it is. */
  reasons(): string[];
  /** Why a store that answers must not be used, in the words of `reasons`; undefined while no fault is known. */
  unfit(): string | undefined;
  stop(): void;
}

/**
 * Checks every second. @param parts.hasAnswered whether the store answered at the start. A gateway whose store has
 * never answered is not ready; otherwise a roll-out with a wrong password would replace one good process after the
 * other.
 */
export function watchHealth(parts: {
  store: Pick<Store, "check">;
  hasAnswered: boolean;
  clock: Clock;
  metrics: Metrics;
  log: Log;
  outages: OutageLog;
}): StoreHealth {
  const { store, clock, metrics, log, outages } = parts;
  let failingSinceMs = parts.hasAnswered ? undefined : Number.NEGATIVE_INFINITY;
  /** Why a store that answers must not be used; undefined while no fault is known. */
  let unfit: string | undefined;
  /** What a store that has answered cannot do now; undefined if the last check had no answer. */
  let failure: string | undefined;
  let stopped = false;
  let cancel = () => {};
  metrics.storeUp.set(parts.hasAnswered ? 1 : 0);

  const ask = async () => {
    try {
      await store.check();
      if (unfit !== undefined) log.info({}, "the store is fit for use again");
      outages.answers();
      failingSinceMs = undefined;
      unfit = undefined;
    } catch (error) {
      const reason = unfitness(error);
      if (reason === undefined) outages.unreachable(error);
      else {
        // It has answered, even if only to report a fault.
        outages.answers();
        if (reason !== unfit) log.error({ reason }, "the store is not fit for use");
      }
      failingSinceMs ??= clock.monotonicMs();
      failure = failureOf(error);
      unfit = reason;
    }
    metrics.storeUp.set(failingSinceMs === undefined ? 1 : 0);
    if (!stopped) cancel = clock.after(CHECK_EVERY_MS, ask);
  };
  cancel = clock.after(CHECK_EVERY_MS, ask);
  return {
    reasons() {
      if (unfit !== undefined) return [isUnfit(unfit)];
      const failing = failingSinceMs !== undefined && clock.monotonicMs() - failingSinceMs >= UNREADY_AFTER_MS;
      return failing ? [failure ?? outages.problem] : [];
    },
    unfit: () => (unfit === undefined ? undefined : isUnfit(unfit)),
    stop() {
      stopped = true;
      cancel();
    },
  };
}

const isUnfit = (reason: string): string => `the store is not fit for use: ${reason}`;

/** A store that has answered says why it cannot be used; undefined if it has not answered. */
function failureOf(error: unknown): string | undefined {
  const hasAnswered = error instanceof StoreError && !(error instanceof StoreUnreachableError);
  return hasAnswered ? `the store cannot be used now: ${error.message}` : undefined;
}

/** Why a store that has answered must not be used; undefined if it has not answered. */
function unfitness(error: unknown): string | undefined {
  return error instanceof StoreError && error.outcome === "refused" ? error.message : undefined;
}

/**
 * Checks the store now. @param away what is wrong if it does not answer.
 * @returns what is wrong with it in the words of readiness; undefined while it can be used.
 */
export async function problemOf(store: Pick<Store, "check">, away: () => string): Promise<string | undefined> {
  try {
    await store.check();
    return undefined;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const reason = unfitness(error);
    return reason === undefined ? (failureOf(error) ?? away()) : isUnfit(reason);
  }
}

/**
 * For the start: waits for a store that is unavailable, and refuses one that answers and would lose money (row B11).
 * @returns whether it answers.
 */
export async function demandFitness(store: Pick<Store, "check">, outages: OutageLog): Promise<boolean> {
  try {
    await store.check();
    return true;
  } catch (error) {
    if (error instanceof StoreError && error.outcome === "refused") throw error;
    outages.unreachable(error);
    return false;
  }
}
