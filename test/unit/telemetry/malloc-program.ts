/** Leaves malloc in pieces, as requests do, then waits until it is looked after; prints what it was and what it has become. */
import { tendHeap } from "../../../src/telemetry/heap.ts";
import { systemClock } from "../../../src/values/time.ts";

const WAIT_MS_MAX = 30_000;
const GIVEN_BACK_BYTES = 48 * 1024 * 1024;

// A minute is a second.
tendHeap(
  { upstreams: () => [], isShortOfMemory: () => false },
  { after: (ms, task) => systemClock.after(ms / 60, task) },
);
// All of them are there when it is measured, whenever V8 collects: that depends on what code it had to compile.
const pieces = Array.from({ length: 5_000 }, () => Buffer.alloc(20_000, 1));
const beforeBytes = process.memoryUsage.rss();
const kept = pieces.filter((_, index) => index % 100 === 0);
pieces.length = 0;
const untilMs = performance.now() + WAIT_MS_MAX;
while (process.memoryUsage.rss() > beforeBytes - GIVEN_BACK_BYTES && performance.now() < untilMs)
  await new Promise((resolve) => setTimeout(resolve, 50));
process.stdout.write(JSON.stringify({ beforeBytes, afterBytes: process.memoryUsage.rss(), kept: kept.length }));
