/** Makes much garbage, as a start or a peak does, then waits until it is looked after; prints what it was and what it has become. */
import { tendHeap } from "../../../src/telemetry/heap.ts";
import { systemClock } from "../../../src/values/time.ts";

const WAIT_MS_MAX = 30_000;
const GIVEN_BACK_BYTES = 64 * 1024 * 1024;

// A minute is a second.
tendHeap(
  { upstreams: () => [], isShortOfMemory: () => false },
  { after: (ms, task) => systemClock.after(ms / 60, task) },
);
const made = Array.from({ length: 1_000_000 }, (_, i) => ({ i, text: `${i}`, list: [i, i + 1] }));
made.length = 0;
const beforeBytes = process.memoryUsage.rss();
const untilMs = performance.now() + WAIT_MS_MAX;
while (process.memoryUsage.rss() > beforeBytes - GIVEN_BACK_BYTES && performance.now() < untilMs)
  await new Promise((resolve) => setTimeout(resolve, 50));
process.stdout.write(JSON.stringify({ beforeBytes, afterBytes: process.memoryUsage.rss() }));
