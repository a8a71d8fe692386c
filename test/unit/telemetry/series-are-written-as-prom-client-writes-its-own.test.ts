/** Counters, histograms and gauges of our own are written as prom-client writes its own, on each kind of page and summed up. */
import assert from "node:assert/strict";
import test from "node:test";
import { AggregatorRegistry, Counter, Gauge, Histogram, type Metric, Registry } from "prom-client";
import { LabelledCounter, LabelledGauge, LabelledHistogram } from "../../../src/telemetry/series.ts";

const LABELS = ["zone", "area"] as const;
const BUCKETS = [0.05, 0.1, 1, 2.5, 10];
const TRACE = "0af7651916cd43dd8448eb211c80319c";

interface Page {
  readonly registry: Registry;
  readonly inc: (labels: Record<string, string>, by: number) => void;
  readonly incPlain: (by: number) => void;
  readonly inGauge: (labels: Record<string, string>, by: number) => void;
  readonly decGauge: (labels: Record<string, string>) => void;
  readonly observe: (labels: Record<string, string>, value: number, traceId: string | undefined) => void;
}

function theirs(contentType: typeof Registry.prototype.contentType): Page {
  const registry = new Registry();
  registry.setContentType(contentType);
  // It refuses to make a histogram with exemplars for the older form, and not to write it so.
  const newer = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>();
  newer.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const registers = [newer];
  const counter = new Counter({ name: "seen_total", help: "Seen.", labelNames: LABELS, registers });
  const plain = new Counter({ name: "plain_total", help: "Plain.", registers });
  const gauge = new Gauge({ name: "running", help: "Running.", labelNames: LABELS, registers, aggregator: "sum" });
  new Counter({ name: "never_total", help: "Never.", registers });
  new Counter({ name: "never_labelled_total", help: "Never.", labelNames: LABELS, registers });
  const traced = new Histogram({
    name: "took_seconds",
    help: 'Took "long".',
    labelNames: LABELS,
    buckets: BUCKETS,
    registers,
    enableExemplars: true,
  });
  for (const metric of newer.getMetricsAsArray()) {
    registry.registerMetric(newer.getSingleMetric(metric.name) as unknown as Metric<string>);
  }
  return {
    registry,
    inc: (labels, by) => counter.inc(labels, by),
    incPlain: (by) => plain.inc(by),
    inGauge: (labels, by) => gauge.inc(labels, by),
    decGauge: (labels) => gauge.dec(labels),
    observe: (labels, value, traceId) =>
      traced.observe({ labels, value, ...(traceId ? { exemplarLabels: { trace_id: traceId } } : {}) } as never),
  };
}

function ours(contentType: typeof Registry.prototype.contentType): Page {
  const registry = new Registry();
  registry.setContentType(contentType);
  const add = <M extends object>(metric: M): M => {
    registry.registerMetric(metric as unknown as Metric<string>);
    return metric;
  };
  const aggregator = "sum";
  const counter = add(new LabelledCounter({ name: "seen_total", help: "Seen.", labelNames: LABELS, aggregator }));
  const plain = add(new LabelledCounter({ name: "plain_total", help: "Plain.", labelNames: [], aggregator }));
  const gauge = add(new LabelledGauge({ name: "running", help: "Running.", labelNames: LABELS, aggregator }));
  add(new LabelledCounter({ name: "never_total", help: "Never.", labelNames: [], aggregator }));
  add(new LabelledCounter({ name: "never_labelled_total", help: "Never.", labelNames: LABELS, aggregator }));
  const facts = { name: "took_seconds", help: 'Took "long".', labelNames: LABELS, buckets: BUCKETS };
  const traced = add(new LabelledHistogram(facts));
  return {
    registry,
    inc: (labels, by) => counter.inc(labels as never, by),
    incPlain: (by) => plain.inc({}, by),
    inGauge: (labels, by) => gauge.inc(labels as never, by),
    decGauge: (labels) => gauge.dec(labels as never),
    observe: (labels, value, traceId) => traced.observe(labels as never, value, traceId),
  };
}

/** Without the instants of exemplars. */
async function written(registry: Registry): Promise<string> {
  return (await registry.metrics()).replace(/^(.* # \{.*\} \S+) \S+$/gm, "$1");
}

function fill({ inc, incPlain, inGauge, decGauge, observe }: Page): void {
  let seed = 11;
  const next = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const names = ["a", "b", 'c"d', "\\", "\n", "", "__proto__", "7", "constructor"];
  const name = () => names[next(names.length)] as string;
  for (let i = 0; i < 2_000; i++) {
    const labels = next(2) ? { zone: name(), area: name() } : { area: name(), zone: name() };
    const value = [...BUCKETS, 0, 0.3, 11, -1, next(1_000) / 77][next(BUCKETS.length + 5)] as number;
    if (next(2)) inc(labels, next(3) ? next(5) / 3 : 0);
    else observe(labels, value, next(4) ? undefined : TRACE);
    if (next(50) === 0) incPlain(1);
    if (next(2)) inGauge(labels, next(5));
    else decGauge(labels);
  }
}

for (const contentType of [Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE]) {
  test(`a page is the same as ${contentType}`, async () => {
    const pages = [theirs(contentType), ours(contentType)] as const;
    const texts = await Promise.all(pages.map(async ({ registry }) => await written(registry)));
    assert.equal(texts[1], texts[0], "with nothing counted");
    for (const page of pages) fill(page);
    const [expected, actual] = await Promise.all(pages.map(({ registry }) => written(registry)));
    assert.equal(actual, expected);
    assert.equal(actual?.includes(`# {trace_id="${TRACE}"}`), contentType === Registry.OPENMETRICS_CONTENT_TYPE);
    const snapshots = await Promise.all(pages.map(({ registry }) => registry.getMetricsAsJSON()));
    const [summed, ownSummed] = await Promise.all(
      snapshots.map((one) => written(AggregatorRegistry.aggregate([structuredClone(one), structuredClone(one)]))),
    );
    assert.equal(ownSummed, summed);
  });
}

test("what is no count and no value is refused, and changes nothing", async () => {
  const counter = new LabelledCounter({ name: "c", help: "c", labelNames: LABELS, aggregator: "sum" });
  const histogram = new LabelledHistogram({ name: "h", help: "h", labelNames: LABELS, buckets: BUCKETS });
  const labels = { zone: "a", area: "b" };
  for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => counter.inc(labels, bad), TypeError);
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => histogram.observe(labels, bad), TypeError);
  assert.deepEqual([(await counter.get()).values, (await histogram.get()).values], [[], []]);
});

test("a snapshot does not change with what is counted after it", async () => {
  const counter = new LabelledCounter({ name: "c", help: "c", labelNames: LABELS, aggregator: "sum" });
  counter.inc({ zone: "a", area: "b" });
  const before = await counter.get();
  counter.inc({ zone: "a", area: "b" }, 2);
  assert.deepEqual(before.values, [{ labels: { zone: "a", area: "b" }, value: 1 }]);
  assert.equal((await counter.get()).values[0]?.value, 3);
});

test("what becomes of the labels that were given changes no series", async () => {
  const counter = new LabelledCounter({ name: "c", help: "c", labelNames: LABELS, aggregator: "sum" });
  const histogram = new LabelledHistogram({ name: "h", help: "h", labelNames: LABELS, buckets: BUCKETS });
  const labels = { zone: "a", area: "b" };
  counter.inc(labels);
  histogram.observe(labels, 1);
  labels.zone = "c";
  assert.deepEqual((await counter.get()).values, [{ labels: { zone: "a", area: "b" }, value: 1 }]);
  assert.equal((await histogram.get()).values[0]?.labels.zone, "a");
});
