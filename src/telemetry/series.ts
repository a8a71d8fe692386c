/**
 * Counters, histograms and gauges that move with each request are counted here and written out by prom-client. Its own find a series by
 * a text made of its labels and a bucket by a text made of its bound, which takes five times as long as this, some fifteen times in
 * each request.
 */

/** The values of a metric's labels. */
export type Labels<Name extends string> = object & Readonly<Record<Name, string>>;

/** A value in the form in which prom-client's registry takes it (`Metric.get`). */
interface WrittenValue {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
  readonly exemplar?: Exemplar | null;
}

/** A metric in that form. */
interface WrittenMetric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly WrittenValue[];
  readonly aggregator: string;
}

/** An observation that names its trace (OpenMetrics). */
interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  /** Seconds since the epoch. */
  readonly timestamp: number;
}

interface MetricFacts<Name extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly Name[];
}

const MS_PER_S = 1_000;

/** What there is for each combination of labels, found label by label. */
class ByLabels<Name extends string, Found> {
  readonly all: Found[] = [];
  readonly #names: readonly Name[];
  readonly #make: (labels: Labels<Name>) => Found;
  /** A map of maps, as deep as there are labels. */
  readonly #root = new Map<string, unknown>();

  constructor(names: readonly Name[], make: (labels: Labels<Name>) => Found) {
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
    const found = this.#make({ ...labels });
    at.set(last, found);
    this.all.push(found);
    return found;
  }
}

const NO_LABELS = {};

/** A number for each combination of labels that goes up and down. */
export class LabelledGauge<Name extends string> {
  readonly name: string;
  readonly type = "gauge";
  readonly help: string;
  readonly aggregator: string;
  readonly labelNames: readonly Name[];
  readonly #series: ByLabels<Name, { readonly labels: Labels<Name>; value: number }>;

  constructor({ name, help, labelNames, aggregator }: MetricFacts<Name> & { readonly aggregator: string }) {
    this.name = name;
    this.help = help;
    this.aggregator = aggregator;
    this.labelNames = labelNames;
    this.#series = new ByLabels(labelNames, (labels) => ({ labels, value: 0 }));
  }

  inc(labels: Labels<Name>, by = 1): void {
    this.#series.find(labels).value += by;
  }

  dec(labels: Labels<Name>): void {
    this.#series.find(labels).value -= 1;
  }

  /** For prom-client's registry. */
  async get(): Promise<WrittenMetric> {
    const { name, help, type, aggregator } = this;
    const values = this.#series.all.map(({ labels, value }) => ({ labels: { ...labels }, value }));
    return { name, help, type, aggregator, values };
  }
}

/** A number for each combination of labels that only grows. */
export class LabelledCounter<Name extends string> {
  readonly name: string;
  readonly type = "counter";
  readonly help: string;
  readonly aggregator: "first" | "sum";
  readonly labelNames: readonly Name[];
  readonly #series: ByLabels<Name, { readonly labels: Labels<Name>; value: number }>;

  constructor({ name, help, labelNames, aggregator }: MetricFacts<Name> & { readonly aggregator: "first" | "sum" }) {
    this.name = name;
    this.help = help;
    this.aggregator = aggregator;
    this.labelNames = labelNames;
    this.#series = new ByLabels(labelNames, (labels) => ({ labels, value: 0 }));
    // A metric without labels is there from the start.
    if (labelNames.length === 0) this.#series.find(NO_LABELS as Labels<Name>);
  }

  /** Adds. @throws TypeError for what is no number, or less than nothing. */
  inc(labels: Labels<Name>, by = 1): void {
    if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) throw new TypeError(`a counter cannot grow by ${by}`);
    this.#series.find(labels).value += by;
  }

  /** For prom-client's registry. */
  async get(): Promise<WrittenMetric> {
    const { name, help, type, aggregator } = this;
    const values = this.#series.all.map(({ labels, value }) => ({ labels: { ...labels }, value }));
    return { name, help, type, aggregator, values };
  }
}

interface Distribution<Name extends string> {
  readonly labels: Labels<Name>;
  /** Observations by bucket, the one above all bounds last. */
  readonly counts: Float64Array;
  sum: number;
  /** The last observation with a trace, by bucket; undefined: none had one yet. */
  exemplars: (Exemplar | undefined)[] | undefined;
}

/** How observed values are distributed, for each combination of labels. */
export class LabelledHistogram<Name extends string> {
  readonly name: string;
  readonly type = "histogram";
  readonly help: string;
  readonly aggregator = "sum";
  readonly labelNames: readonly Name[];
  readonly #bounds: readonly number[];
  readonly #series: ByLabels<Name, Distribution<Name>>;

  /** @param buckets their upper bounds, ascending, bounds included. */
  constructor({ name, help, labelNames, buckets }: MetricFacts<Name> & { readonly buckets: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    this.#bounds = buckets;
    const counts = () => new Float64Array(buckets.length + 1);
    this.#series = new ByLabels(labelNames, (labels) => ({ labels, counts: counts(), sum: 0, exemplars: undefined }));
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

  /** For prom-client's registry. */
  async get(): Promise<WrittenMetric> {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: this.#series.all.flatMap((series) => this.#written(series)) };
  }

  #written({ labels, counts, sum, exemplars }: Distribution<Name>): WrittenValue[] {
    let count = 0;
    const buckets = Array.from(counts, (more, i): WrittenValue => {
      count += more;
      const le = this.#bounds[i] ?? "+Inf";
      const exemplar = exemplars?.[i] ?? null;
      return { labels: { le, ...labels }, value: count, metricName: `${this.name}_bucket`, exemplar };
    });
    return [
      ...buckets,
      { labels: { ...labels }, value: sum, metricName: `${this.name}_sum` },
      { labels: { ...labels }, value: count, metricName: `${this.name}_count` },
    ];
  }
}
