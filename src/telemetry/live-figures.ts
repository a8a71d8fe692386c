/** The few figures, out of all metrics, that show the current state of a gateway. */
import type { MetricsSnapshot } from "./metrics.ts";
import { countsUpTo, isSeries, sumsBy } from "./series-snapshot.ts";

/** Counts are since the start. */
export interface LiveFigures {
  /** Requests that were answered. */
  readonly requests: number;
  /** The refused ones among them, by cause. */
  readonly refusals: ReadonlyMap<string, number>;
  /**
   * Cumulative counts of first tokens, by their maximum delay after the request in seconds; the last key is Infinity.
   */
  readonly firstTokens: ReadonlyMap<number, number>;
  /** US dollars by group. */
  readonly spendUsd: ReadonlyMap<string, number>;
  readonly inFlight: number;
  readonly queued: number;
  /** Share of the journal in use. */
  readonly journalFill: number;
  readonly unsettled: number;
}

const NAMES = [
  "requests_total",
  "time_to_first_token_seconds",
  "spend_usd_total",
  "in_flight",
  "queued",
  "journal_fill_ratio",
  "journal_unsettled",
] as const;
type Name = (typeof NAMES)[number];

/** Only the metrics that `figuresOf` reads, so that no others need to be summed over several processes. */
export function liveMetrics(snapshot: MetricsSnapshot): MetricsSnapshot {
  const wanted = new Set<string>(NAMES.map((name) => `tollgate_${name}`));
  return snapshot.filter(({ name }) => wanted.has(name));
}

export function figuresOf(snapshot: MetricsSnapshot): LiveFigures {
  const found = (name: Name) => snapshot.find((metric) => metric.name === `tollgate_${name}`);
  const by = (name: Name, label: string): Map<string, number> => {
    const metric = found(name);
    return metric && isSeries(metric) ? sumsBy(metric, label) : new Map();
  };
  const sumOf = (name: Name): number => {
    const metric = found(name);
    if (metric === undefined) return 0;
    return sum(isSeries(metric) ? metric.numbers : metric.values.map(({ value }) => value));
  };
  const firstTokens = found("time_to_first_token_seconds");
  const refusals = by("requests_total", "cause");
  for (const cause of ["", "none"]) refusals.delete(cause);
  return {
    requests: sumOf("requests_total"),
    refusals,
    firstTokens: firstTokens && isSeries(firstTokens) ? countsUpTo(firstTokens) : new Map(),
    spendUsd: by("spend_usd_total", "group"),
    inFlight: sumOf("in_flight"),
    queued: sumOf("queued"),
    journalFill: sumOf("journal_fill_ratio"),
    unsettled: sumOf("journal_unsettled"),
  };
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
