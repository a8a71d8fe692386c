/** Sums per day of the embedded store. */
import type { AccountTag } from "../../values/key.ts";
import { addTotals, type DaySpan, daySumOf, NO_USAGE_TOTAL, type UsageTotal } from "../day-sums.ts";
import type { DaySum, Page } from "../records.ts";
import { countsFrom, type UsageCounts } from "../token-sums.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database.ts";

/** Rows that one page has at most. */
const PAGE_ROWS = 500;

/** Both days included. */
export function readDays(context: Context, tag: AccountTag, since: string, until: string): DaySum[] {
  return context.db
    .all("SELECT * FROM days WHERE tag = ? AND day >= ? AND day <= ? ORDER BY day, field", tag, since, until)
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
    "SELECT * FROM days WHERE tag = ?1 AND (day, field) > (?2, ?3) AND day <= ?4 ORDER BY day, field LIMIT ?5",
    ...[tag, day, field, until, PAGE_ROWS],
  );
  const last = rows.length < PAGE_ROWS ? undefined : rows.at(-1);
  return { items: rows.map(toDaySum), next: last && `${last.day}:${last.field}` };
}

/** What some fields come to over some days, by field; a field without a sum has none. */
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
    totals.set(field, addTotals(totals.get(field) ?? NO_USAGE_TOTAL, toDaySum(row)));
  }
  return totals;
}

function toDaySum(row: Row): DaySum {
  return daySumOf(row.day as string, row.field as string, row.amount as bigint, countsOf(row));
}

const COLUMNS = { cachedInput: "cached_input", cacheWrite: "cache_write" } as const;

export function countsOf(row: Row): UsageCounts {
  return countsFrom((kind) => Number(row[kind in COLUMNS ? COLUMNS[kind as keyof typeof COLUMNS] : kind]));
}
