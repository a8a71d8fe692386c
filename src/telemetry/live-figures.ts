/** The few figures that say how a gateway does at this instant, out of all its metrics. */
import type { MetricsSnapshot } from "./metrics.ts";

/** Counts are those since the start. */
export interface LiveFigures {
  /** Requests that were answered. */
  readonly requests: number;
  /** Of them those that were refused, by cause. */
  readonly refusals: ReadonlyMap<string, number>;
  /** First tokens at most so many seconds after their request, by that number; the last one is infinite. */
  readonly firstTokens: ReadonlyMap<number, number>;
  /** US dollars by group. */
  readonly spendUsd: ReadonlyMap<string, number>;
  readonly inFlight: number;
  readonly queued: number;
  /** Share of the journal in use. */
  readonly journalFill: number;
  readonly unsettled: number;
}

type LiveSample = { readonly value: number; readonly labels: object; readonly metricName?: string };

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

/** Only what `figuresOf` reads: all that has to be added up where a gateway is several processes. */
export function liveMetrics(snapshot: MetricsSnapshot): MetricsSnapshot {
  const wanted = new Set<string>(NAMES.map((name) => `tollgate_${name}`));
  return snapshot.filter(({ name }) => wanted.has(name));
}

export function figuresOf(snapshot: MetricsSnapshot): LiveFigures {
  const samples = (name: Name): readonly LiveSample[] =>
    (snapshot.find((metric) => metric.name === `tollgate_${name}`)?.values ?? []) as readonly LiveSample[];
  const requests = samples("requests_total");
  const buckets = samples("time_to_first_token_seconds").filter(({ metricName }) => metricName?.endsWith("_bucket"));
  const isRefusal = (cause: string) => cause !== "none" && cause !== "";
  return {
    requests: sum(requests),
    refusals: sumsBy(requests, "cause", isRefusal),
    firstTokens: new Map(
      [...sumsBy(buckets, "le")].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count]),
    ),
    spendUsd: sumsBy(samples("spend_usd_total"), "group"),
    inFlight: sum(samples("in_flight")),
    queued: sum(samples("queued")),
    journalFill: sum(samples("journal_fill_ratio")),
    unsettled: sum(samples("journal_unsettled")),
  };
}

function sum(samples: readonly LiveSample[]): number {
  return samples.reduce((total, { value }) => total + value, 0);
}

function sumsBy(
  samples: readonly LiveSample[],
  label: string,
  isWanted = (_text: string) => true,
): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { labels, value } of samples) {
    const text = String((labels as Readonly<Record<string, unknown>>)[label] ?? "");
    if (isWanted(text)) sums.set(text, (sums.get(text) ?? 0) + value);
  }
  return sums;
}
