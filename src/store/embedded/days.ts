/** Sums per day of the embedded store. */
import type { AccountTag } from "../../values/key.ts";
import type { DaySum, Page, UpstreamDaySum } from "../records.ts";
import {
  addTotals,
  type DaySpan,
  daySumOf,
  NO_USAGE_TOTAL,
  type UsageTotal,
  upstreamDaySumOf,
} from "../sums/day-sums.ts";
import { countsFrom, type UsageCounts } from "../sums/token-sums.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database/database.ts";

/** The most rows of one page. */
const PAGE_ROWS = 500;

/** Fields of upstreams, and no others, sort between these two (names.ts). */
const UPSTREAMS_FROM = "^";
const UPSTREAMS_TO = "_";
const NO_UPSTREAM = `NOT (field >= '${UPSTREAMS_FROM}' AND field < '${UPSTREAMS_TO}')`;

/** Both days included. */
export function readDays(context: Context, tag: AccountTag, since: string, until: string): DaySum[] {
  return context.db
    .all(
      `SELECT * FROM days WHERE tag = ? AND day >= ? AND day <= ? AND ${NO_UPSTREAM} ORDER BY day, field`,
      ...[tag, since, until],
    )
    .map(toDaySum);
}

/** The cursor is day and field of the last row of the page before. */
export function pageDays(
  context: Context,
  tag: AccountTag,
  { since, until }: DaySpan,
  cursor: string | undefined,
): Page<DaySum> {
  const [day = since, field = ""] = cursor === undefined ? [] : [cursor.slice(0, 10), cursor.slice(11)];
  const rows = context.db.all(
    `SELECT * FROM days WHERE tag = ?1 AND (day, field) > (?2, ?3) AND day <= ?4 AND ${NO_UPSTREAM}
     ORDER BY day, field LIMIT ?5`,
    ...[tag, day, field, until, PAGE_ROWS],
  );
  return { items: rows.map(toDaySum), next: nextOf(rows) };
}

/** The same for the sums by upstream. */
export function pageUpstreamDays(
  context: Context,
  tag: AccountTag,
  { since, until }: DaySpan,
  cursor: string | undefined,
): Page<UpstreamDaySum> {
  const [day = since, field = ""] = cursor === undefined ? [] : [cursor.slice(0, 10), cursor.slice(11)];
  const rows = context.db.all(
    `SELECT * FROM days WHERE tag = ?1 AND (day, field) > (?2, ?3) AND day <= ?4 AND field >= ?5 AND field < ?6
     ORDER BY day, field LIMIT ?7`,
    ...[tag, day, field, until, UPSTREAMS_FROM, UPSTREAMS_TO, PAGE_ROWS],
  );
  return { items: rows.map(toUpstreamDaySum), next: nextOf(rows) };
}

function nextOf(rows: readonly Row[]): string | undefined {
  const last = rows.length < PAGE_ROWS ? undefined : rows.at(-1);
  return last && `${last.day}:${last.field}`;
}

/** The sums of some fields over some days, by field; a field without a sum is missing. */
export function spentOf(
  context: Context,
  tag: AccountTag,
  days: readonly string[],
  fields: readonly string[],
): Map<string, UsageTotal> {
  const rows = context.db.all(
    `SELECT * FROM days WHERE tag = ? AND day IN (SELECT value FROM json_each(?))
     AND field IN (SELECT value FROM json_each(?))`,
    tag,
    JSON.stringify(days),
    JSON.stringify(fields),
  );
  const totals = new Map<string, UsageTotal>(fields.map((field) => [field, NO_USAGE_TOTAL]));
  for (const row of rows) {
    const field = row.field as string;
    totals.set(field, addTotals(totals.get(field) ?? NO_USAGE_TOTAL, totalOf(row)));
  }
  return totals;
}

export function toDaySum(row: Row): DaySum {
  return daySumOf(row.day as string, row.field as string, totalOf(row));
}

export function toUpstreamDaySum(row: Row): UpstreamDaySum {
  return upstreamDaySumOf(row.day as string, row.field as string, totalOf(row));
}

function totalOf(row: Row): UsageTotal {
  const [amount, cost, absorbed] = [row.amount, row.cost, row.absorbed] as [bigint, bigint, bigint];
  return { amount, counts: countsOf(row), cost, absorbed };
}

const COLUMNS = { cachedInput: "cached_input", cacheWrite: "cache_write" } as const;

function countsOf(row: Row): UsageCounts {
  return countsFrom((kind) => Number(row[kind in COLUMNS ? COLUMNS[kind as keyof typeof COLUMNS] : kind]));
}
