/**
 * Counters, histograms and gauges that move with each request are counted here and written by series-snapshot.ts. Those of prom-client find a
 * series by a text made of its labels and a bucket by a text made of its bound, which takes five times as long as this, some fifteen
 * times in each request.
 */
import type { Exemplar, SeriesSnapshot } from "./series-snapshot.ts";

/** The values of a metric's labels. */
export type Labels<Name extends string> = object & Readonly<Record<Name, string>>;

interface MetricFacts<Name extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly Name[];
}

const MS_PER_S = 1_000;

/** What there is for each combination of labels, found label by label. */
class ByLabels<Name extends string, Found> {
  readonly all: Found[] = [];
  /** The values of the labels of all of them, in the order of their names. */
  readonly labels: string[] = [];
  readonly #names: readonly Name[];
  readonly #make: () => Found;
  /** A map of maps, as deep as there are labels. */
  readonly #root = new Map<string, unknown>();

  constructor(names: readonly Name[], make: () => Found) {
    this.#names = names;
    this.#make = make;
  }

  find(labels: Labels<Name>): Found {
    const names = this.#names;
    let at = this.#root;
    for (let i = 0; i < names.length - 1; i++) {
      const value = labels[names[i] as Name];
      let next = at.get(value) as Map<string, unknown> | undefined;
      if (!next) {
        next = new Map();
        at.set(value, next);
      }
      at = next;
    }
    const last = names.length === 0 ? "" : labels[names[names.length - 1] as Name];
    const known = at.get(last) as Found | undefined;
    if (known) return known;
    const found = this.#make();
    at.set(last, found);
    this.all.push(found);
    for (const name of names) this.labels.push(labels[name]);
    return found;
  }
}

const NO_LABELS = {};

/** A number for each combination of labels that goes up and down. */
export class LabelledGauge<Name extends string> {
  readonly name: string;
  readonly type = "gauge" as const;
  readonly help: string;
  readonly aggregator: SeriesSnapshot["aggregator"];
  readonly labelNames: readonly Name[];
  readonly #series: ByLabels<Name, { value: number }>;

  constructor({
    name,
    help,
    labelNames,
    aggregator,
  }: MetricFacts<Name> & { readonly aggregator: SeriesSnapshot["aggregator"] }) {
    this.name = name;
    this.help = help;
    this.aggregator = aggregator;
    this.labelNames = labelNames;
    this.#series = new ByLabels(labelNames, () => ({ value: 0 }));
  }

  inc(labels: Labels<Name>, by = 1): void {
    this.#series.find(labels).value += by;
  }

  dec(labels: Labels<Name>): void {
    this.#series.find(labels).value -= 1;
  }

  snapshot(): SeriesSnapshot {
    const numbers = Float64Array.from(this.#series.all, ({ value }) => value);
    return snapshotOf(this, { labels: [...this.#series.labels], bounds: [], numbers, exemplars: undefined });
  }
}

/** A number for each combination of labels that only grows. */
export class LabelledCounter<Name extends string> {
  readonly name: string;
  readonly type = "counter" as const;
  readonly help: string;
  readonly aggregator: "first" | "sum";
  readonly labelNames: readonly Name[];
  readonly #series: ByLabels<Name, { value: number }>;

  constructor({ name, help, labelNames, aggregator }: MetricFacts<Name> & { readonly aggregator: "first" | "sum" }) {
    this.name = name;
    this.help = help;
    this.aggregator = aggregator;
    this.labelNames = labelNames;
    this.#series = new ByLabels(labelNames, () => ({ value: 0 }));
    // A metric without labels is there from the start.
    if (labelNames.length === 0) this.#series.find(NO_LABELS as Labels<Name>);
  }

  /** Adds. @throws TypeError for what is no number, or less than nothing. */
  inc(labels: Labels<Name>, by = 1): void {
    if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) throw new TypeError(`a counter cannot grow by ${by}`);
    this.#series.find(labels).value += by;
  }

  snapshot(): SeriesSnapshot {
    const numbers = Float64Array.from(this.#series.all, ({ value }) => value);
    return snapshotOf(this, { labels: [...this.#series.labels], bounds: [], numbers, exemplars: undefined });
  }
}

interface Distribution {
  /** Observations by bucket, the one above all bounds last. */
  readonly counts: Float64Array;
  sum: number;
  /** The last observation with a trace, by bucket; undefined: none had one yet. */
  exemplars: (Exemplar | undefined)[] | undefined;
}

/** How observed values are distributed, for each combination of labels. */
export class LabelledHistogram<Name extends string> {
  readonly name: string;
  readonly type = "histogram" as const;
  readonly help: string;
  readonly aggregator = "sum" as const;
  readonly labelNames: readonly Name[];
  readonly #bounds: readonly number[];
  readonly #series: ByLabels<Name, Distribution>;

  /** @param buckets their upper bounds, ascending, bounds included. */
  constructor({ name, help, labelNames, buckets }: MetricFacts<Name> & { readonly buckets: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    this.#bounds = buckets;
    const counts = () => new Float64Array(buckets.length + 1);
    this.#series = new ByLabels(labelNames, () => ({ counts: counts(), sum: 0, exemplars: undefined }));
  }

  /** Adds a value. @param traceId of the trace that the value comes from, if there is one. @throws TypeError for what is no number. */
  observe(labels: Labels<Name>, value: number, traceId?: string): void {
    if (!Number.isFinite(value)) throw new TypeError(`cannot observe ${value}`);
    const series = this.#series.find(labels);
    const bucket = this.#bucketOf(value);
    series.sum += value;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    if (traceId === undefined) return;
    series.exemplars ??= [];
    series.exemplars[bucket] = { labelSet: { trace_id: traceId }, value, timestamp: Date.now() / MS_PER_S };
  }

  #bucketOf(value: number): number {
    const bounds = this.#bounds;
    let i = 0;
    while (i < bounds.length && value > (bounds[i] as number)) i++;
    return i;
  }

  /** @param withExemplars for a page of this process in the form of OpenMetrics; nobody else has a place for them. */
  snapshot(withExemplars = false): SeriesSnapshot {
    const { all, labels } = this.#series;
    const width = this.#bounds.length + 2;
    const numbers = new Float64Array(all.length * width);
    const exemplars = withExemplars ? new Map<number, Exemplar>() : undefined;
    for (const [n, series] of all.entries()) {
      numbers.set(series.counts, n * width);
      numbers[(n + 1) * width - 1] = series.sum;
      for (const [bucket, exemplar] of series.exemplars?.entries() ?? []) {
        if (exemplar) exemplars?.set(n * width + bucket, exemplar);
      }
    }
    return snapshotOf(this, { labels: [...labels], bounds: this.#bounds, numbers, exemplars });
  }
}

type SnapshotFacts = "name" | "help" | "type" | "aggregator" | "labelNames";

function snapshotOf(
  metric: Pick<SeriesSnapshot, SnapshotFacts>,
  state: Omit<SeriesSnapshot, SnapshotFacts>,
): SeriesSnapshot {
  const { name, help, type, aggregator, labelNames } = metric;
  return { name, help, type, aggregator, labelNames, ...state };
}
