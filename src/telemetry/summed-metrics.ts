/** One page of metrics of several processes, by prom-client's own rules of aggregation: each metric names how. */
import { AggregatorRegistry } from "prom-client";
import type { MetricsPage, MetricsSnapshot } from "./metrics.ts";

/** Sums snapshots up. The first one is asked where a metric says `first`. */
export async function summedPage(snapshots: readonly MetricsSnapshot[]): Promise<MetricsPage> {
  const registry = AggregatorRegistry.aggregate([...snapshots]);
  return { contentType: registry.contentType, body: await registry.metrics() };
}

/** The same as values. */
export function summedSnapshot(snapshots: readonly MetricsSnapshot[]): Promise<MetricsSnapshot> {
  return AggregatorRegistry.aggregate([...snapshots]).getMetricsAsJSON();
}

/**
 * The counters of processes that have ended: a sum that went back would look like a restart of all, and count twice.
 * Their gauges are dropped, as what they measured is gone.
 */
export class RetiredMetrics {
  #snapshots: MetricsSnapshot[] = [];
  #isSumming = false;

  /** Takes the last figures of a process, at once, so that the next reader finds them here. */
  add(last: MetricsSnapshot): void {
    this.#snapshots.push(last.filter(({ type }) => LASTING.has(String(type))));
    // Snapshots that cannot be summed up stay as they are: the page says why.
    if (!this.#isSumming) void this.#sum().catch(() => {});
  }

  /** To be summed up with those of the living. */
  get snapshots(): readonly MetricsSnapshot[] {
    return this.#snapshots;
  }

  /** Makes one snapshot of many, so that they do not grow in number with every restart. */
  async #sum(): Promise<void> {
    this.#isSumming = true;
    try {
      while (this.#snapshots.length > 1) {
        const summed = [...this.#snapshots];
        const sum = await AggregatorRegistry.aggregate(summed).getMetricsAsJSON();
        // Others may have come meanwhile, after these.
        this.#snapshots = [sum, ...this.#snapshots.slice(summed.length)];
      }
    } finally {
      this.#isSumming = false;
    }
  }
}

const LASTING = new Set(["counter", "histogram"]);
