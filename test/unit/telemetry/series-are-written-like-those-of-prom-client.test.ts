/** Our counters, histograms and gauges are written as prom-client writes its own, on each kind of page and summed. */
import assert from "node:assert/strict";
import test from "node:test";
import { AggregatorRegistry, Counter, Gauge, Histogram, type Metric, Registry } from "prom-client";
import { LabelledCounter, LabelledGauge, LabelledHistogram } from "../../../src/telemetry/series.ts";
import { addedUp, type SeriesSnapshot, written } from "../../../src/telemetry/series-snapshot.ts";
import { summedPage } from "../../../src/telemetry/summed-metrics.ts";

const LABELS = ["zone", "area"] as const;
const BUCKETS = [0.05, 0.1, 1, 2.5, 10];
const TRACE = "0af7651916cd43dd8448eb211c80319c";

interface Page {
  /** The page, and the page of two processes with the same figures. */
  readonly text: () => Promise<string>;
  readonly summed: () => Promise<string>;
  readonly inc: (labels: Record<string, string>, by: number) => void;
  readonly incPlain: (by: number) => void;
  readonly inGauge: (labels: Record<string, string>, by: number) => void;
  readonly decGauge: (labels: Record<string, string>) => void;
  readonly observe: (labels: Record<string, string>, value: number, traceId: string | undefined) => void;
}

function theirs(contentType: typeof Registry.prototype.contentType): Page {
  const registry = new Registry();
  registry.setContentType(contentType);
  // prom-client refuses to create a histogram with exemplars for the older format, but writes one in it.
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
    text: () => registry.metrics(),
    async summed() {
      const one = await registry.getMetricsAsJSON();
      return AggregatorRegistry.aggregate([structuredClone(one), structuredClone(one)]).metrics();
    },
    inc: (labels, by) => counter.inc(inOrder(labels), by),
    incPlain: (by) => plain.inc(by),
    inGauge: (labels, by) => gauge.inc(inOrder(labels), by),
    decGauge: (labels) => gauge.dec(inOrder(labels)),
    observe: (labels, value, traceId) =>
      traced.observe({
        labels: inOrder(labels),
        value,
        ...(traceId ? { exemplarLabels: { trace_id: traceId } } : {}),
      } as never),
  };
}

function ours(contentType: typeof Registry.prototype.contentType): Page {
  const metrics: { snapshot(withExemplars?: boolean): SeriesSnapshot }[] = [];
  const add = <M extends (typeof metrics)[number]>(metric: M): M => {
    metrics.push(metric);
    return metric;
  };
  const isOpen = contentType === Registry.OPENMETRICS_CONTENT_TYPE;
  const aggregator = "sum";
  const counter = add(new LabelledCounter({ name: "seen_total", help: "Seen.", labelNames: LABELS, aggregator }));
  const plain = add(new LabelledCounter({ name: "plain_total", help: "Plain.", labelNames: [], aggregator }));
  const gauge = add(new LabelledGauge({ name: "running", help: "Running.", labelNames: LABELS, aggregator }));
  add(new LabelledCounter({ name: "never_total", help: "Never.", labelNames: [], aggregator }));
  add(new LabelledCounter({ name: "never_labelled_total", help: "Never.", labelNames: LABELS, aggregator }));
  const facts = { name: "took_seconds", help: 'Took "long".', labelNames: LABELS, buckets: BUCKETS };
  const traced = add(new LabelledHistogram(facts));
  return {
    text: async () =>
      `${await written(
        "",
        metrics.map((one) => one.snapshot(isOpen)),
        isOpen,
      )}${isOpen ? "# EOF\n" : ""}`,
    async summed() {
      const snapshots = metrics.map((one) => one.snapshot());
      return (await summedPage([structuredClone(snapshots), structuredClone(snapshots)])).body.trimStart();
    },
    inc: (labels, by) => counter.inc(labels as never, by),
    incPlain: (by) => plain.inc({}, by),
    inGauge: (labels, by) => gauge.inc(labels as never, by),
    decGauge: (labels) => gauge.dec(labels as never),
    observe: (labels, value, traceId) => traced.observe(labels as never, value, traceId),
  };
}

/** Labels in the order of their names, as our series have them and prom-client does not. */
const inOrder = ({ zone = "", area = "" }: Record<string, string>) => ({ zone, area });

/** The page without the timestamps of exemplars. */
const timeless = (text: string) => text.replace(/^(.* # \{.*\} \S+) \S+$/gm, "$1");

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
  test(`a page of prom-client and ours are equal as ${contentType}`, async () => {
    const pages = [theirs(contentType), ours(contentType)] as const;
    const both = (what: "text" | "summed") => Promise.all(pages.map(async (page) => timeless(await page[what]())));
    const [nothing, ownNothing] = await both("text");
    assert.equal(ownNothing, nothing, "the histogram has no count");
    for (const page of pages) fill(page);
    const [expected, actual] = await both("text");
    assert.equal(actual, expected);
    assert.equal(actual?.includes(`# {trace_id="${TRACE}"}`), contentType === Registry.OPENMETRICS_CONTENT_TYPE);
    // After a page of OpenMetrics, prom-client's own counters have other names.
    if (contentType === Registry.OPENMETRICS_CONTENT_TYPE) return;
    const [summed, ownSummed] = await both("summed");
    assert.equal(ownSummed, summed);
  });
}

test("an invalid count or value is refused and changes nothing", async () => {
  const counter = new LabelledCounter({ name: "c", help: "c", labelNames: LABELS, aggregator: "sum" });
  const histogram = new LabelledHistogram({ name: "h", help: "h", labelNames: LABELS, buckets: BUCKETS });
  const labels = { zone: "a", area: "b" };
  for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => counter.inc(labels, bad), TypeError);
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => histogram.observe(labels, bad), TypeError);
  assert.deepEqual([counter.snapshot().numbers.length, histogram.snapshot().numbers.length], [0, 0]);
});

test("a snapshot does not change with later counts", () => {
  const counter = new LabelledCounter({ name: "c", help: "c", labelNames: LABELS, aggregator: "sum" });
  const histogram = new LabelledHistogram({ name: "h", help: "h", labelNames: LABELS, buckets: BUCKETS });
  const labels = { zone: "a", area: "b" };
  const count = () => {
    counter.inc(labels);
    histogram.observe(labels, 1);
  };
  count();
  const before = [counter.snapshot(), histogram.snapshot()];
  const kept = structuredClone(before);
  count();
  counter.inc({ zone: "other", area: "b" });
  assert.deepEqual(before, kept);
  assert.deepEqual([...counter.snapshot().numbers], [2, 1]);
});

test("a later change of the given label object changes no series", () => {
  const counter = new LabelledCounter({ name: "c", help: "c", labelNames: LABELS, aggregator: "sum" });
  const labels = { zone: "a", area: "b" };
  counter.inc(labels);
  labels.zone = "c";
  assert.deepEqual(counter.snapshot().labels, ["a", "b"]);
});

test("gauges of several processes are combined to the least, the largest or the first value", () => {
  const snapshots = (aggregator: "min" | "max" | "first") =>
    [3, 1, 2].map((value) => {
      const gauge = new LabelledGauge({ name: "g", help: "g", labelNames: LABELS, aggregator });
      gauge.inc({ zone: "a", area: "b" }, value);
      gauge.inc({ zone: `only ${value}`, area: "b" }, value);
      return gauge.snapshot();
    }) as [SeriesSnapshot, ...SeriesSnapshot[]];
  const added = (["min", "max", "first"] as const).map((aggregator) => addedUp(snapshots(aggregator)));
  assert.deepEqual(
    added.map(({ numbers }) => [...numbers]),
    [
      [1, 3, 1, 2],
      [3, 3, 1, 2],
      [3, 3, 1, 2],
    ],
  );
  assert.deepEqual(added[0]?.labels, ["a", "b", "only 3", "b", "only 1", "b", "only 2", "b"]);
});

test("a page of many series is written in slices, so that other work runs in between", async () => {
  const histogram = new LabelledHistogram({ name: "h", help: "h", labelNames: LABELS, buckets: BUCKETS });
  for (let n = 0; n < 20_000; n++) histogram.observe({ zone: `zone ${n}`, area: "b" }, 1);
  let turns = 0;
  const turn = () => setImmediate(() => ++turns && turn());
  const first = turn();
  const page = await written("", [histogram.snapshot()], false);
  clearImmediate(first);
  const turnsMeanwhile = turns;
  turns = Number.NaN;
  assert.equal(page.split("\n").length, 20_000 * (BUCKETS.length + 3) + 3);
  assert.ok(turnsMeanwhile > 0, `${turnsMeanwhile} turns`);
});
