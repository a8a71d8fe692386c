/** For what is tried again every second: logs a failure when its reason is new, else once a minute. */
import type { Clock } from "../values/time.ts";

const TOLD_AGAIN_MS = 60_000;

/** @returns the function to call at each failure; it calls `tell` when that is news. */
export function sparingly(clock: Clock, tell: (reason: string) => void): (reason: string) => void {
  let told: string | undefined;
  let toldMs = 0;
  return (reason) => {
    const nowMs = clock.monotonicMs();
    if (reason === told && nowMs - toldMs < TOLD_AGAIN_MS) return;
    told = reason;
    toldMs = nowMs;
    tell(reason);
  };
}
