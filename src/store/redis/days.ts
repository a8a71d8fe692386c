/** Sums per day on Redis: a hash of amounts and a hash of counts for each UTC day, all in the account's slot. */
import type { AccountTag } from "../../values/key.ts";
import { utcDay } from "../../values/time.ts";
import { countField, isUpstreamField, upstreamField } from "../names.ts";
import type { DaySum, Page, UpstreamDaySum } from "../records.ts";
import { daySumOf, daysOfSpan, MONEY_KINDS, startOfDay, type UsageTotal, upstreamDaySumOf } from "../sums/day-sums.ts";
import { COUNT_KINDS, countsFrom } from "../sums/token-sums.ts";
import type { Runner } from "./connection/runner.ts";
import { dayCountsKey, dayKey } from "./keys.ts";
import { entriesOf, fieldsOf, type HashFields } from "./records.ts";
import type { Scripts } from "./scripts.ts";

/** The number of days that one step examines, and the approximate number of fields that it reads at most. */
const STEP_DAYS = 31;
const STEP_FIELDS = 500;

type DaysReply = readonly [done: string, cursor: string, days: readonly [sums: string[], counts: string[]][]];

/** One step: some days, or a part of one day that has many fields. The cursor is the day and the position in it. */
export async function pageDays(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  span: { readonly since: string; readonly until: string },
  cursor: string | undefined,
): Promise<Page<DaySum>> {
  const step = stepOf(span, cursor);
  const keys = step.days.flatMap((day) => [dayKey(tag, day), dayCountsKey(tag, day)]);
  const kinds = [...COUNT_KINDS, ...MONEY_KINDS];
  const reply = await runner.script(scripts["days-page"], keys, [`${STEP_FIELDS}`, step.place, ...kinds]);
  const [done, next, read] = reply as DaysReply;
  const items = read.flatMap(([sums, counts], at) =>
    daySumsOf(step.days[at] as string, fieldsOf(sums), fieldsOf(counts)),
  );
  return { items, next: nextOf(step, span.until, done, next) };
}

/** All pages. */
export async function readDays(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  span: { readonly since: string; readonly until: string },
): Promise<DaySum[]> {
  const sums: DaySum[] = [];
  let cursor: string | undefined;
  do {
    const page = await pageDays(runner, scripts, tag, span, cursor);
    sums.push(...page.items);
    cursor = page.next;
  } while (cursor !== undefined);
  return sums;
}

type UpstreamsReply = readonly [done: string, cursor: string, days: readonly string[][]];

/** The same kind of step through the sums by upstream. */
export async function pageUpstreamDays(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  span: { readonly since: string; readonly until: string },
  cursor: string | undefined,
): Promise<Page<UpstreamDaySum>> {
  const step = stepOf(span, cursor);
  const keys = step.days.map((day) => dayCountsKey(tag, day));
  const reply = await runner.script(scripts["upstreams-page"], keys, [`${STEP_FIELDS}`, step.place]);
  const [done, next, read] = reply as UpstreamsReply;
  const items = read.flatMap((counts, at) => upstreamDaySumsOf(step.days[at] as string, fieldsOf(counts)));
  return { items, next: nextOf(step, span.until, done, next) };
}

interface DaysPage {
  readonly days: readonly string[];
  /** The position in the first of them. */
  readonly place: string;
}

function stepOf({ since, until }: { readonly since: string; readonly until: string }, cursor = ""): DaysPage {
  const [from = since, place = "0"] = /^([^:]*):([0-9]{1,20})$/.exec(cursor)?.slice(1) ?? [];
  return { days: daysOfSpan(from, until).slice(0, STEP_DAYS), place };
}

function nextOf({ days }: DaysPage, until: string, done: string, place: string): string | undefined {
  const [last = ""] = days.slice(-1);
  // Nothing follows the end, which may be the last day that can be written: 9999-12-31.
  const following =
    days[Number(done)] ?? (last < until ? utcDay((startOfDay(last) as number) + 86_400_000) : undefined);
  return following === undefined ? undefined : `${following}:${place}`;
}

/** The sums of one day, by field. A value that is not a number counts as 0; the audit then finds what is missing. */
export function daySumsOf(day: string, sums: HashFields, counts: HashFields): DaySum[] {
  return entriesOf(sums, "").map(([field, amount]) => daySumOf(day, field, totalOf(counts, field, wholeOf(amount))));
}

/** The sums of one day by upstream, from the same hash of counts. */
export function upstreamDaySumsOf(day: string, counts: HashFields): UpstreamDaySum[] {
  const fields = new Set(Object.keys(counts).filter(isUpstreamField).map(fieldOfCount));
  return [...fields].map((field) =>
    upstreamDaySumOf(day, field, totalOf(counts, field, wholeOf(counts[countField("charged", field)]))),
  );
}

/** The upstream's field that a field of the counts belongs to. */
function fieldOfCount(name: string): string {
  const [, upstream = "", model = ""] = /^[^|]*\|([^|]*)\|(.*)$/su.exec(name) ?? [];
  return upstreamField(upstream, model);
}

function totalOf(counts: HashFields, field: string, amount: bigint): UsageTotal {
  const read = (kind: string) => wholeOf(counts[countField(kind, field)]);
  return { amount, counts: countsFrom((kind) => Number(read(kind))), cost: read("cost"), absorbed: read("absorbed") };
}

function wholeOf(text = ""): bigint {
  return /^-?[0-9]{1,19}$/.test(text) ? BigInt(text) : 0n;
}
