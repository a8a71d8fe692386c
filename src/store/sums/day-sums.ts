/** What was charged per UTC day: spans of days, and sums over them. */

import { nanoUsd } from "../../values/money.ts";
import { utcDay } from "../../values/time.ts";
import { dayField, partsOfUpstreamField } from "../names.ts";
import { type AccountState, DAYS_MAX, type DaySum, type UpstreamDaySum } from "../records.ts";
import { addCounts, NO_COUNTS, type UsageCounts } from "./token-sums.ts";

const DAY_MS = 86_400_000;
/** The number of days that are summed by default. */
const SPAN_DEFAULT_DAYS = 30;

/** UTC days from one to another, both included. */
export interface DaySpan {
  readonly since: string;
  readonly until: string;
}

/** What is wrong with a span: the invalid member, and what it must be. */
interface SpanFault {
  readonly member: "since" | "until";
  readonly rule: string;
}

/** The parts of a field as `dayField` spells it. A group and a key's id contain no "|". */
export function partsOfField(field: string): Pick<DaySum, "group" | "model" | "key"> {
  const [, group = "", model = "", key = ""] = /^([^|]*)\|(.*)\|([^|]*)$/su.exec(field) ?? [];
  return { group, model, key };
}

export function daySumOf(day: string, field: string, total: UsageTotal): DaySum {
  return { day, ...partsOfField(field), ...total, amount: nanoUsd(total.amount) };
}

/** @param field as `upstreamField` spells it. */
export function upstreamDaySumOf(day: string, field: string, total: UsageTotal): UpstreamDaySum {
  return { day, ...partsOfUpstreamField(field), ...total, amount: nanoUsd(total.amount) };
}

/** Midnight at the beginning of a day written as `YYYY-MM-DD`; undefined for a text that is not a day. */
export function startOfDay(day: string): number | undefined {
  const atMs = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(atMs) && utcDay(atMs) === day ? atMs : undefined;
}

/**
 * Reads a requested span. The default end is today; the default beginning gives a span of 30 days.
 * @param nowMs the present, on the clock by which the sums are filed.
 */
export function readSpan(
  asked: { since?: string | undefined; until?: string | undefined },
  nowMs: number,
): DaySpan | SpanFault {
  const until = asked.until ?? utcDay(nowMs);
  const lastMs = startOfDay(until);
  if (lastMs === undefined) return { member: "until", rule: "a day of the calendar, YYYY-MM-DD" };
  const since = asked.since ?? utcDay(lastMs - (SPAN_DEFAULT_DAYS - 1) * DAY_MS);
  const firstMs = startOfDay(since);
  if (firstMs === undefined) return { member: "since", rule: "a day of the calendar, YYYY-MM-DD" };
  if (firstMs > lastMs) return { member: "since", rule: "no later than `until`" };
  if ((lastMs - firstMs) / DAY_MS >= DAYS_MAX) {
    return { member: "since", rule: `within ${DAYS_MAX} days of \`until\`` };
  }
  return { since, until };
}

/**
 * Every day of a span.
 * @throws RangeError for a span that `readSpan` would refuse.
 */
export function daysOfSpan(since: string, until: string): string[] {
  const span = readSpan({ since, until }, 0);
  if ("rule" in span) throw new RangeError(`store: \`${span.member}\` must be ${span.rule}`);
  const firstMs = startOfDay(since) as number;
  const count = ((startOfDay(until) as number) - firstMs) / DAY_MS + 1;
  return Array.from({ length: count }, (_, index) => utcDay(firstMs + index * DAY_MS));
}

/** Totals of sums. Over several accounts the amount may exceed what one account may hold. */
export interface UsageTotal {
  /** What was charged. */
  readonly amount: bigint;
  readonly counts: UsageCounts;
  /** What upstreams are expected to bill, at the routes' cost prices. */
  readonly cost: bigint;
  /** The sum of the `absorbed` lines. */
  readonly absorbed: bigint;
}

/** Sums of money besides what was charged, as stores name them. */
export const MONEY_KINDS = ["cost", "absorbed"] as const;

export const NO_USAGE_TOTAL: UsageTotal = Object.freeze({ amount: 0n, counts: NO_COUNTS, cost: 0n, absorbed: 0n });

export function addTotals(a: UsageTotal, b: UsageTotal): UsageTotal {
  return {
    amount: a.amount + b.amount,
    counts: addCounts(a.counts, b.counts),
    cost: a.cost + b.cost,
    absorbed: a.absorbed + b.absorbed,
  };
}

/** Members by which sums can be added up. */
export type SumMember = "day" | "group" | "model" | "key";

/** Adds sums to existing totals, by one of their members. */
export function addSums<M extends string>(
  totals: Map<string, UsageTotal>,
  sums: readonly (UsageTotal & Readonly<Record<M, string>>)[],
  member: M,
): void {
  for (const sum of sums) totals.set(sum[member], addTotals(totals.get(sum[member]) ?? NO_USAGE_TOTAL, sum));
}

/** The same totals in the order of their names. */
export function inOrder(totals: ReadonlyMap<string, UsageTotal>): Map<string, UsageTotal> {
  return new Map([...totals].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function totalOf(sums: Iterable<UsageTotal>): UsageTotal {
  let total = NO_USAGE_TOTAL;
  for (const sum of sums) total = addTotals(total, sum);
  return total;
}

/* Sums per day in the canonical form of an inspected account: for tests. */

export type DaySums = Pick<AccountState, "days" | "counts" | "costs" | "upstreams">;

/** @param sums of all days, and sums by upstream */
export function daySumsAsState(sums: readonly DaySum[], upstreams: readonly UpstreamDaySum[]): DaySums {
  const named = sums.map((sum) => ({ ...sum, field: dayField(sum.group, sum.model, sum.key) }));
  return {
    days: byDay(named, ({ field, amount }) => [field, amount]),
    counts: byDay(
      named.filter(({ counts }) => counts.requests !== 0),
      ({ field, counts }) => [field, counts],
    ),
    costs: byDay(
      named.filter(({ cost, absorbed }) => cost > 0n || absorbed > 0n),
      ({ field, cost, absorbed }) => [field, `${cost} ${absorbed}`],
    ),
    upstreams: byDay(upstreams, ({ day: _, ...sum }) => [`${sum.upstream} ${sum.model}`, sum]),
  };
}

function byDay<S extends { readonly day: string }, T>(
  sums: readonly S[],
  entry: (sum: S) => [string, T],
): Record<string, Record<string, T>> {
  const days: Record<string, Record<string, T>> = {};
  for (const sum of sums) days[sum.day] = { ...days[sum.day], ...Object.fromEntries([entry(sum)]) };
  return days;
}
