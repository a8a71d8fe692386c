/**
 * How close this process is to its limits, as one number: 0 at rest, 1 at full load (modeled on Envoy's overload
 * manager). The largest of the parts counts, because each of them alone can bring the process down.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import type { Clock } from "../values/time.ts";

/** Measurements of the process itself. */
interface Vitals {
  /** 99th percentile of the event loop's delay, sustained over two windows, milliseconds. */
  readonly loopDelayMs: number;
  readonly rssBytes: number;
  /** Share of the JavaScript heap's limit in use. */
  readonly heapRatio: number;
}

/** Further parts of the pressure. */
interface Load {
  /** Requests whose body is being processed: admitted ones, counts and explanations. */
  readonly inFlight: number;
  /** 0 while the journal has enough room, 1 if it allows no new requests. */
  readonly journal: number;
}

export interface PressureLimits {
  readonly inFlightMax: number;
  readonly loopDelayMs: number;
  readonly memoryBytes: number;
}

/** The gauge: the largest share of any limit, from 0 to 1. */
export function pressureOf(vitals: Vitals, load: Load, limits: PressureLimits): number {
  const ofProcess = Math.max(
    vitals.loopDelayMs / limits.loopDelayMs,
    vitals.rssBytes / limits.memoryBytes,
    vitals.heapRatio,
  );
  return Math.min(1, Math.max(0, ofProcess, load.inFlight / limits.inFlightMax, load.journal));
}

/** Minimum age of a reading before a new one is taken. */
const WINDOW_MS = 500;
/** How often the loop's delay is measured; this interval itself does not count as delay. */
const RESOLUTION_MS = 20;
const NANO_PER_MS = 1e6;

interface VitalsMeter {
  /** The last reading, or a new one if that is older than a window. */
  read(): Vitals;
  stop(): void;
}

/**
 * Reads the process's own state on demand, at most twice a second. A single stall (a long garbage collection, a
 * suspended machine) is over by the time it is seen, so the lower value of two windows counts.
 */
export function createVitalsMeter(clock: Pick<Clock, "monotonicMs">): VitalsMeter {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let readAtMs = clock.monotonicMs();
  let windowBeforeMs = 0;
  let vitals: Vitals = { loopDelayMs: 0, ...memory() };
  return {
    read() {
      const nowMs = clock.monotonicMs();
      if (nowMs - readAtMs < WINDOW_MS) return vitals;
      readAtMs = nowMs;
      // An empty histogram has no meaningful percentile.
      const windowMs = delay.count === 0 ? 0 : Math.max(0, delay.percentile(99) / NANO_PER_MS - RESOLUTION_MS);
      delay.reset();
      vitals = { loopDelayMs: Math.min(windowMs, windowBeforeMs), ...memory() };
      windowBeforeMs = windowMs;
      return vitals;
    },
    stop: () => void delay.disable(),
  };
}

function memory(): Pick<Vitals, "rssBytes" | "heapRatio"> {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  return { rssBytes: process.memoryUsage.rss(), heapRatio: used_heap_size / heap_size_limit };
}
