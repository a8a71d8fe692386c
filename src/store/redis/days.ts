/** Sums per day on Redis: a hash of amounts and a hash of counts for each UTC day, all in the account's slot. */
import type { AccountTag } from "../../values/key.ts";
import { utcDay } from "../../values/time.ts";
import { daySumOf, daysOfSpan, startOfDay } from "../day-sums.ts";
import { countField } from "../names.ts";
import type { DaySum, Page } from "../records.ts";
import { COUNT_KINDS, countsFrom, type UsageCounts } from "../token-sums.ts";
import { dayCountsKey, dayKey } from "./keys.ts";
import { entriesOf, type Fields, fieldsOf } from "./records.ts";
import type { Runner } from "./runner.ts";
import type { Scripts } from "./scripts.ts";

/** Days that one step looks at, and fields that it reads at most, about. */
const STEP_DAYS = 31;
const STEP_FIELDS = 500;

type Reply = readonly [done: string, cursor: string, days: readonly [sums: string[], counts: string[]][]];

/** A step: some days, or a part of one that has many fields. The cursor is the day and the place in it. */
export async function pageDays(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  span: { readonly since: string; readonly until: string },
  cursor: string | undefined,
): Promise<Page<DaySum>> {
  const [since = "", place = "0"] = /^([^:]*):([0-9]{1,20})$/.exec(cursor ?? "")?.slice(1) ?? [span.since];
  const days = daysOfSpan(since, span.until).slice(0, STEP_DAYS);
  const keys = days.flatMap((day) => [dayKey(tag, day), dayCountsKey(tag, day)]);
  const reply = await runner.script(scripts["days-page"], keys, [`${STEP_FIELDS}`, place, ...COUNT_KINDS]);
  const [done, next, read] = reply as Reply;
  const items = read.flatMap(([sums, counts], at) => daySumsOf(days[at] as string, fieldsOf(sums), fieldsOf(counts)));
  const [last = ""] = days.slice(-1);
  const following = days[Number(done)] ?? utcDay((startOfDay(last) as number) + 86_400_000);
  return { items, next: following > span.until ? undefined : `${following}:${next}` };
}

/** The sums of one day, by field. What is no number counts as 0: the audit finds what is missing then. */
export function daySumsOf(day: string, sums: Fields, counts: Fields): DaySum[] {
  return entriesOf(sums, "").map(([field, amount]) => daySumOf(day, field, wholeOf(amount), countsOf(counts, field)));
}

function countsOf(counts: Fields, field: string): UsageCounts {
  return countsFrom((kind) => Number(wholeOf(counts[countField(kind, field)])));
}

function wholeOf(text = ""): bigint {
  return /^-?[0-9]{1,19}$/.test(text) ? BigInt(text) : 0n;
}
