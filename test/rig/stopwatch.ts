/** How long something took, on a machine that may stop any process for a second. */
import { ownDelayMs, systemClock } from "../../src/values/time.ts";

/**
 * Starts to time what is promised within a time, such as an answer of another process.
 * @returns the milliseconds since then, without those by which this process itself was late.
 */
export function stopwatch(): () => number {
  const lateMs = ownDelayMs(systemClock);
  const startMs = performance.now();
  return () => performance.now() - startMs - (ownDelayMs(systemClock) - lateMs);
}

const US_PER_MS = 1_000;

/** Starts to time work of this thread. @returns the milliseconds of processor time that it has taken since then. */
export function workTimer(): () => number {
  const before = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / US_PER_MS;
  };
}
