/**
 * The series of a metric at one instant, as one list of labels and one of numbers. It is small enough to be sent to
 * another process every few seconds, added to those of others, and written as a page. 2,000 combinations of model and
 * group are 75,000 lines of a page. prom-client (15.1) makes an object of each and blocks the event loop for 400 ms,
 * during which every stream stops.
 */
import { setImmediate } from "node:timers/promises";

/** An observation that names its trace (OpenMetrics). */
export interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  /** Seconds since the epoch. */
  readonly timestamp: number;
}

export interface SeriesSnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several processes are combined on a shared page. */
  readonly aggregator: "min" | "max" | "sum" | "first";
  readonly labelNames: readonly string[];
  /** The label values, one series after the other. */
  readonly labels: readonly string[];
  /** Upper bounds of a histogram's buckets, without the bucket above all of them. */
  readonly bounds: readonly number[];
  /** One series after the other: its number or, for a histogram, the observations by bucket and then their sum. */
  readonly numbers: Float64Array;
  /** By the bucket's index in `numbers`; undefined: none. */
  readonly exemplars: ReadonlyMap<number, Exemplar> | undefined;
}

/** Whether it is one of our snapshots and not a metric of prom-client. */
export function isSeries<Other extends object>(metric: SeriesSnapshot | Other): metric is SeriesSnapshot {
  return "numbers" in metric;
}

/** How many numbers one series of this metric has. */
function widthOf({ type, bounds }: Pick<SeriesSnapshot, "type" | "bounds">): number {
  return type === "histogram" ? bounds.length + 2 : 1;
}

/** Combines the snapshots of one metric from several processes, as its aggregator says. The result has no exemplars. */
export function addedUp(snapshots: readonly [SeriesSnapshot, ...SeriesSnapshot[]]): SeriesSnapshot {
  const [first] = snapshots;
  const width = widthOf(first);
  const depth = first.labelNames.length;
  const labels: string[] = [];
  const numbers: number[] = [];
  const places = new Map<string, number>();
  for (const one of snapshots) {
    for (let at = 0, from = 0; at < one.numbers.length; at += width, from += depth) {
      const own = one.labels.slice(from, from + depth);
      const key = own.join("\0");
      const place = places.get(key);
      if (place === undefined) {
        places.set(key, numbers.length);
        labels.push(...own);
        for (let i = 0; i < width; i++) numbers.push(one.numbers[at + i] as number);
      } else if (first.aggregator !== "first") {
        for (let i = 0; i < width; i++) {
          const [before, more] = [numbers[place + i] as number, one.numbers[at + i] as number];
          numbers[place + i] = first.aggregator === "sum" ? before + more : Math[first.aggregator](before, more);
        }
      }
    }
  }
  return { ...first, labels, numbers: Float64Array.from(numbers), exemplars: undefined };
}

/** Sums of a counter's or a gauge's numbers by the values of one of its labels. */
export function sumsBy(metric: SeriesSnapshot, label: string): Map<string, number> {
  const sums = new Map<string, number>();
  const [depth, column] = [metric.labelNames.length, metric.labelNames.indexOf(label)];
  for (const [series, number] of metric.numbers.entries()) {
    const text = metric.labels[series * depth + column] ?? "";
    sums.set(text, (sums.get(text) ?? 0) + number);
  }
  return sums;
}

/** Cumulative observations of all series of a histogram together, by bound; the last bound is Infinity. */
export function countsUpTo(metric: SeriesSnapshot): Map<number, number> {
  const width = widthOf(metric);
  const counts = new Map<number, number>();
  let count = 0;
  for (let bucket = 0; bucket < width - 1; bucket++) {
    for (let at = bucket; at < metric.numbers.length; at += width) count += metric.numbers[at] as number;
    counts.set(metric.bounds[bucket] ?? Number.POSITIVE_INFINITY, count);
  }
  return counts;
}

/** Maximum time that writing blocks the event loop before it yields. */
const SLICE_MS = 4;
/** Series between two checks of the clock. */
const SERIES_PER_LOOK = 32;

/**
 * Writes metrics like prom-client does, in slices.
 * @param before what is on the page already, with a line feed at the end; empty if there is nothing.
 * @param isOpen in OpenMetrics form, without its end marker.
 */
export async function written(before: string, metrics: readonly SeriesSnapshot[], isOpen: boolean): Promise<string> {
  const pieces = [before];
  let sinceMs = performance.now();
  for (const metric of metrics) {
    // The older text form has an empty line between two metrics.
    if (!isOpen && pieces.some((piece) => piece !== "")) pieces.push("\n");
    const family = isOpen && metric.type === "counter" ? metric.name.replace(/_total$/, "") : metric.name;
    pieces.push(`# HELP ${family} ${escaped(metric.help)}\n# TYPE ${family} ${metric.type}\n`);
    const write = metric.type === "histogram" ? histogramWriter(metric, isOpen) : plainWriter(metric, isOpen);
    const series = metric.numbers.length / widthOf(metric);
    for (let n = 0; n < series; n++) {
      pieces.push(write(n));
      if (n % SERIES_PER_LOOK !== 0 || performance.now() - sinceMs < SLICE_MS) continue;
      await setImmediate();
      sinceMs = performance.now();
    }
  }
  return pieces.join("");
}

type SeriesWriter = (series: number) => string;

function plainWriter(metric: SeriesSnapshot, isOpen: boolean): SeriesWriter {
  const { name, type, numbers } = metric;
  const sample = isOpen && type === "counter" ? `${name.replace(/_total$/, "")}_total` : name;
  return (series) => {
    const labels = labelText(metric, series);
    return `${sample}${labels === "" ? "" : `{${labels}}`} ${numbers[series]}\n`;
  };
}

function histogramWriter(metric: SeriesSnapshot, isOpen: boolean): SeriesWriter {
  const { name, bounds, numbers, exemplars } = metric;
  const width = widthOf(metric);
  const heads = [...bounds, "+Inf"].map((bound) => `${name}_bucket{le="${bound}"`);
  return (series) => {
    const labels = labelText(metric, series);
    const [more, alone] = labels === "" ? ["} ", " "] : [`,${labels}} `, `{${labels}} `];
    let text = "";
    let count = 0;
    for (let bucket = 0; bucket <= bounds.length; bucket++) {
      const at = series * width + bucket;
      count += numbers[at] as number;
      text += `${heads[bucket]}${more}${count}${isOpen ? exemplarText(exemplars?.get(at)) : ""}\n`;
    }
    return `${text}${name}_sum${alone}${numbers[(series + 1) * width - 1]}\n${name}_count${alone}${count}\n`;
  };
}

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return "";
  const labels = Object.entries(exemplar.labelSet).map(([name, value]) => pair(name, value));
  return ` # {${labels.join(",")}} ${exemplar.value} ${exemplar.timestamp}`;
}

function labelText({ labelNames, labels }: SeriesSnapshot, series: number): string {
  const from = series * labelNames.length;
  let text = "";
  for (let i = 0; i < labelNames.length; i++) {
    text += `${i === 0 ? "" : ","}${pair(labelNames[i] as string, labels[from + i] as string)}`;
  }
  return text;
}

function pair(name: string, value: string): string {
  return `${name}="${/[\\\n"]/.test(value) ? escaped(value).replaceAll('"', '\\"') : value}"`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
