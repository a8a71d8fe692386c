/** One page of metrics of several processes: each metric names how it is put together; those of prom-client by its own rules. */
import { AggregatorRegistry } from "prom-client";
import type { MetricsPage, MetricsSnapshot, PlainMetric } from "./metrics.ts";
import { addedUp, isSeries, type SeriesSnapshot, written } from "./series-snapshot.ts";

/** Sums snapshots up. The first one is asked where a metric says `first`. */
export async function summedPage(snapshots: readonly MetricsSnapshot[]): Promise<MetricsPage> {
  const plain = plainOf(snapshots);
  return {
    contentType: plain.contentType,
    body: await written(await plain.metrics(), seriesOf(snapshots), false),
  };
}

/** The same as values. */
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
        const sum = await summedSnapshot(summed);
        // Others may have come meanwhile, after these.
        this.#snapshots = [sum, ...this.#snapshots.slice(summed.length)];
      }
    } finally {
      this.#isSumming = false;
    }
  }
}

const LASTING = new Set(["counter", "histogram"]);
