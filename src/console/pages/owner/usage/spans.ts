/** The span of days, which is part of the address, so that a link shows the same. Days are UTC, as in the sums. */
import type { PagePlace } from "../../parts/router.ts";

export interface UsageSpan {
  readonly since: string;
  readonly until: string;
}

/** Allowed values in the address: this many days until today. */
export const SPANS = [1, 7, 30, 90] as const;
const DEFAULT_DAYS = 30;
const DAY_MS = 86_400_000;
const DAY_FORM = /^\d{4}-\d\d-\d\d$/;

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** The last `count` days, including today. */
function lastDays(count: number): UsageSpan {
  const nowMs = Date.now();
  return { since: dayOf(nowMs - (count - 1) * DAY_MS), until: dayOf(nowMs) };
}

/** The span in the address; `days` if it is one of the usual spans. */
export function spanOf({ query }: PagePlace): UsageSpan & { readonly days: number | undefined } {
  const [since, until] = [query.get("since"), query.get("until")];
  if (since && until && DAY_FORM.test(since) && DAY_FORM.test(until)) return { since, until, days: undefined };
  const asked = Number(query.get("days"));
  const days = SPANS.find((one) => one === asked) ?? DEFAULT_DAYS;
  return { ...lastDays(days), days };
}

/** Every day of a span; none if the span is invalid. */
export function daysOf({ since, until }: UsageSpan): readonly string[] {
  const [first, last] = [Date.parse(since), Date.parse(until)];
  const count = Number.isNaN(first) || Number.isNaN(last) ? 0 : (last - first) / DAY_MS + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => dayOf(first + at * DAY_MS));
}

/** Midnight of a day in the reader's time zone, in seconds: the axis of a chart uses local dates. */
export function localMidnight(day: string): number {
  return new Date(`${day}T00:00:00`).getTime() / 1_000;
}

/** An amount as a whole number of billionths, for comparisons. */
export function nanoOf(usd: string): bigint {
  const [whole = "0", fraction = ""] = usd.split(".");
  return BigInt(whole + fraction.padEnd(9, "0"));
}
