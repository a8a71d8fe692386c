/**
 * One metrics page for several processes: each metric names its aggregator; prom-client's own metrics follow its rules.
 */
import { AggregatorRegistry } from "prom-client";
import type { MetricsPage, MetricsSnapshot, PlainMetric } from "./metrics.ts";
import { addedUp, isSeries, type SeriesSnapshot, written } from "./series-snapshot.ts";

/** Sums up snapshots. For the aggregator `first` the first snapshot counts. */
export async function summedPage(snapshots: readonly MetricsSnapshot[]): Promise<MetricsPage> {
  const plain = plainOf(snapshots);
  return {
    contentType: plain.contentType,
    body: await written(await plain.metrics(), seriesOf(snapshots), false),
  };
}

/** The same, as values instead of a page. */
export async function summedSnapshot(snapshots: readonly MetricsSnapshot[]): Promise<MetricsSnapshot> {
  return [...(await plainOf(snapshots).getMetricsAsJSON()), ...seriesOf(snapshots)];
}

function plainOf(snapshots: readonly MetricsSnapshot[]) {
  return AggregatorRegistry.aggregate(
    snapshots.map((snapshot) => snapshot.filter((metric): metric is PlainMetric => !isSeries(metric))),
  );
}

function seriesOf(snapshots: readonly MetricsSnapshot[]): SeriesSnapshot[] {
  const byName = new Map<string, [SeriesSnapshot, ...SeriesSnapshot[]]>();
  for (const metric of snapshots.flat()) {
    if (!isSeries(metric)) continue;
    const known = byName.get(metric.name);
    if (known) known.push(metric);
    else byName.set(metric.name, [metric]);
  }
  return [...byName.values()].map(addedUp);
}

/**
 * Keeps the counters of ended processes: a sum that went down would look like a counter reset, and Prometheus would
 * count it twice. Their gauges are dropped, because what they measured no longer exists.
 */
export class RetiredMetrics {
  #snapshots: MetricsSnapshot[] = [];
  #isSumming = false;

  /** Adds the last figures of a process synchronously, so that the next reader finds them here. */
  add(last: MetricsSnapshot): void {
    this.#snapshots.push(last.filter(({ type }) => LASTING.has(String(type))));
    // Snapshots that cannot be summed stay as they are; the page then fails with the reason.
    if (!this.#isSumming) void this.#sum().catch(() => {});
  }

  /** To be summed with those of running processes. */
  get snapshots(): readonly MetricsSnapshot[] {
    return this.#snapshots;
  }

  /** Merges the snapshots into one, so that their number does not grow with every restart. */
  async #sum(): Promise<void> {
    this.#isSumming = true;
    try {
      while (this.#snapshots.length > 1) {
        const summed = [...this.#snapshots];
        const sum = await summedSnapshot(summed);
        // Others may have been added after these in the meantime.
        this.#snapshots = [sum, ...this.#snapshots.slice(summed.length)];
      }
    } finally {
      this.#isSumming = false;
    }
  }
}

const LASTING = new Set(["counter", "histogram"]);
