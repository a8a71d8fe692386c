/** Measures durations on a machine that may stop any process for a second. */
import { ownDelayMs, systemClock } from "../../src/values/time.ts";

/**
 * Starts to time something with a time limit, such as an answer of another process.
 * @returns a function for the milliseconds since then, without the time by which this process itself was late.
 */
export function stopwatch(): () => number {
  const lateMs = ownDelayMs(systemClock);
  const startMs = performance.now();
  return () => performance.now() - startMs - (ownDelayMs(systemClock) - lateMs);
}

const US_PER_MS = 1_000;

/**
 * Starts to time work of this thread. @returns a function for the milliseconds of CPU time that it has used since then.
 */
export function workTimer(): () => number {
  const before = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / US_PER_MS;
  };
}

/**
 * Starts to time the turns of this thread's event loop. Another request waits for a turn to end. @returns a function that
 * ends this and returns the milliseconds of CPU time of the longest turn.
 */
export function longestTurn(): () => number {
  let turnMs = workTimer();
  let longestMs = 0;
  const next = () => {
    longestMs = Math.max(longestMs, turnMs());
    turnMs = workTimer();
    timer = setTimeout(next, 1);
  };
  let timer = setTimeout(next, 1);
  return () => {
    clearTimeout(timer);
    return Math.max(longestMs, turnMs());
  };
}
