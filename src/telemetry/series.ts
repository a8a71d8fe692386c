/**
 * Counters, histograms and gauges that change with each request; series-snapshot.ts writes them. prom-client looks up a
 * series by a string made of its labels and a bucket by a string made of its bound. That takes five times as long,
 * about fifteen times per request.
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

/** One value per combination of labels, looked up label by label. */
class ByLabels<Name extends string, Found> {
  readonly all: Found[] = [];
  /** The label values of all series in one list, each series in the order of the label names. */
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

/** A number per combination of labels that goes up and down. */
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

/** A number per combination of labels that only grows. */
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
    // A metric without labels exists from the start.
    if (labelNames.length === 0) this.#series.find(NO_LABELS as Labels<Name>);
  }

  /** Adds to the counter. @throws TypeError if `by` is not a finite number or is negative. */
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
  /** Observations by bucket; the last bucket is the one above all bounds. */
  readonly counts: Float64Array;
  sum: number;
  /** The last observation with a trace, by bucket; undefined if there was none yet. */
  exemplars: (Exemplar | undefined)[] | undefined;
}

/** A distribution of observed values per combination of labels. */
export class LabelledHistogram<Name extends string> {
  readonly name: string;
  readonly type = "histogram" as const;
  readonly help: string;
  readonly aggregator = "sum" as const;
  readonly labelNames: readonly Name[];
  readonly #bounds: readonly number[];
  readonly #series: ByLabels<Name, Distribution>;

  /** @param buckets inclusive upper bounds, ascending. */
  constructor({ name, help, labelNames, buckets }: MetricFacts<Name> & { readonly buckets: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    this.#bounds = buckets;
    const counts = () => new Float64Array(buckets.length + 1);
    this.#series = new ByLabels(labelNames, () => ({ counts: counts(), sum: 0, exemplars: undefined }));
  }

  /**
   * Adds a value. @param traceId trace that the value comes from, if any. @throws TypeError if the value is not a
   * finite number.
   */
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

  /** @param withExemplars for an OpenMetrics page of this process; no other form can have exemplars. */
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
