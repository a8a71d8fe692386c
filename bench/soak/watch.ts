/** Measures the gateway while it runs: memory, descriptors, event-loop delay, requests in flight. */
import type { House } from "./house.ts";

export interface Sample {
  readonly seconds: number;
  readonly rssMib: number;
  readonly heapMib: number;
  readonly descriptors: number;
  readonly inFlight: number;
  readonly loopP99Ms: number;
}

const MIB = 1_024 * 1_024;

/** Takes one sample. @param startedMs by `performance.now()`. */
export async function sampleOf(house: House, startedMs: number): Promise<Sample> {
  const metrics = await house.metrics();
  const value = (name: string): number => metrics.get(name) ?? Number.NaN;
  return {
    seconds: (performance.now() - startedMs) / 1_000,
    rssMib: value("process_resident_memory_bytes") / MIB,
    heapMib: value("nodejs_heap_size_used_bytes") / MIB,
    descriptors: value("process_open_fds"),
    inFlight: sumOf(metrics, "tollgate_in_flight"),
    loopP99Ms: value("nodejs_eventloop_lag_p99_seconds") * 1_000,
  };
}

/** The sum of a metric over all of its labels. */
export function sumOf(metrics: ReadonlyMap<string, number>, name: string): number {
  let sum = 0;
  for (const [key, value] of metrics) if (key === name || key.startsWith(`${name}{`)) sum += value;
  return sum;
}

/** The trend of a figure: its mean, and the rise of the fitted line from the first sample to the last. */
export interface Trend {
  readonly mean: number;
  readonly rise: number;
  readonly most: number;
}

/** Least squares over the samples. */
export function trendOf(samples: readonly Sample[], figure: (sample: Sample) => number): Trend {
  const xs = samples.map(({ seconds }) => seconds);
  const ys = samples.map(figure);
  const [meanX, meanY] = [mean(xs), mean(ys)];
  const covariance = xs.reduce((sum, x, i) => sum + (x - meanX) * ((ys[i] as number) - meanY), 0);
  const variance = xs.reduce((sum, x) => sum + (x - meanX) ** 2, 0);
  const slope = variance === 0 ? 0 : covariance / variance;
  return { mean: meanY, rise: slope * ((xs.at(-1) ?? 0) - (xs[0] ?? 0)), most: Math.max(...ys) };
}

/**
 * The smallest heap of each group of samples: what is left after a collection, without garbage that waits for one.
 * @param size samples per group; an incomplete group at the end is left out.
 */
export function lowest(samples: readonly Sample[], size: number): Sample[] {
  const rows: Sample[] = [];
  for (let i = 0; i + size <= samples.length; i += size) {
    rows.push(samples.slice(i, i + size).reduce((least, one) => (one.heapMib < least.heapMib ? one : least)));
  }
  return rows;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
