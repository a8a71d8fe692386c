/**
 * Creates much garbage, as the start or a peak does, then waits until memory is returned, and prints the size before
 * and after.
 */
import { watchHeap } from "../../../src/telemetry/heap.ts";
import { systemClock } from "../../../src/values/time.ts";

const WAIT_MS_MAX = 30_000;
const GIVEN_BACK_BYTES = 64 * 1024 * 1024;

// Time runs 60 times as fast, so that a minute takes a second.
watchHeap(
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
