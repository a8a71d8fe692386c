/** One page of metrics of several processes, by prom-client's own rules of aggregation: each metric names how. */
import { AggregatorRegistry } from "prom-client";
import type { MetricsPage, MetricsSnapshot } from "./metrics.ts";

/** Sums snapshots up. The first one is asked where a metric says `first`. */
export async function summedPage(snapshots: readonly MetricsSnapshot[]): Promise<MetricsPage> {
  const registry = AggregatorRegistry.aggregate([...snapshots]);
  return { contentType: registry.contentType, body: await registry.metrics() };
}

/**
 * What stays of a process that has ended: a counter that went back would look like a restart of all, and count twice. Its
 * gauges told of something that is no more.
 * @param retired what stayed of those before it.
 */
export async function retire(retired: MetricsSnapshot, last: MetricsSnapshot): Promise<MetricsSnapshot> {
  const lasting = last.filter(({ type }) => LASTING.has(String(type)));
  return AggregatorRegistry.aggregate([retired, lasting]).getMetricsAsJSON();
}

const LASTING = new Set(["counter", "histogram"]);
