/** CPU time of another process, as Linux counts it. */
import { readdirSync, readFileSync } from "node:fs";

const NS_PER_US = 1_000;

/**
 * User and system time of all threads of a process so far, microseconds. The scheduler's own count
 * (`/proc/PID/task/TID/schedstat`, nanoseconds) and not `/proc/PID/stat`, which counts in hundredths of a second.
 * The time of a thread that has ended is missing; threads of running servers do not end.
 */
export function cpuUs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ", 1)[0]);
    } catch {
      // The thread has ended since the folder was read.
    }
  }
  return ns / NS_PER_US;
}

/** The processes that this one has started. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}
