/**
 * Fragments the memory of malloc, as requests do, then waits until memory is returned, and prints the size before and
 * after.
 */
import { watchHeap } from "../../../src/telemetry/heap.ts";
import { systemClock } from "../../../src/values/time.ts";

const WAIT_MS_MAX = 30_000;
const GIVEN_BACK_BYTES = 48 * 1024 * 1024;

// Time runs 60 times as fast, so that a minute takes a second.
watchHeap(
  { upstreams: () => [], isShortOfMemory: () => false },
  { after: (ms, task) => systemClock.after(ms / 60, task) },
);
// All pieces are alive when the size is measured, whenever V8 collects; that depends on the code that it had to
// compile.
const pieces = Array.from({ length: 5_000 }, () => Buffer.alloc(20_000, 1));
const beforeBytes = process.memoryUsage.rss();
const kept = pieces.filter((_, index) => index % 100 === 0);
pieces.length = 0;
const untilMs = performance.now() + WAIT_MS_MAX;
while (process.memoryUsage.rss() > beforeBytes - GIVEN_BACK_BYTES && performance.now() < untilMs)
  await new Promise((resolve) => setTimeout(resolve, 50));
process.stdout.write(JSON.stringify({ beforeBytes, afterBytes: process.memoryUsage.rss(), kept: kept.length }));
