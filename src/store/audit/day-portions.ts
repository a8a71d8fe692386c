/**
 * The sums per day of an account, read for its audit. Days that can get no more charges are read first, at any instant.
 * For the other days, each field is read over all days at one instant, and the field's lines are summed up to that
 * instant.
 */
import { utcDay } from "../../values/time.ts";
import { FIGURES_FIELDS_MAX } from "../figures.ts";
import type { OpeningFacts } from "../ledger/opening.ts";
import { FIELDS_MAX } from "../ledger/tally.ts";
import { dayField, isUpstreamField, upstreamField } from "../names.ts";
import { DAYS_MAX, type Page } from "../records.ts";
import { SETTLE_HORIZON_MS } from "../settlement.ts";
import { addTotals, NO_USAGE_TOTAL, partsOfField, type UsageTotal } from "../sums/day-sums.ts";
import { NO_COUNTS } from "../sums/token-sums.ts";
import { type AccountReader, FOUND_MAX, type ProgressSteps } from "./reader.ts";
import type { FieldSums, Finding, GroupSums } from "./snapshot.ts";

const DAY_MS = 86_400_000;
/**
 * A request counts on the day of its admission, which is up to the settle horizon before its line. One more day allows
 * for clocks that differ.
 */
const SPAN_MARGIN_MS = SETTLE_HORIZON_MS + DAY_MS;

/** After this many passes, a clock that still jumps is accepted. */
const PASSES_MAX = 6;

/**
 * Judges the sums per day. A finding must occur twice, the second time without a clock jump: a store whose clock jumps
 * charges days that were treated as over.
 * @returns sentences on what could not be judged.
 */
export async function* judgeDays(reader: AccountReader): ProgressSteps<readonly string[]> {
  for (let pass = 1; ; pass++) {
    const { findings, jumped } = (yield* findInDays(reader)) ?? {};
    if (findings === undefined) {
      return [
        `The sums per day were not compared: there are more than ${FIELDS_MAX} combinations of group, model and key.`,
      ];
    }
    if (findings.length === 0) return [];
    if (pass === 1 || (jumped && pass < PASSES_MAX)) continue;
    for (const finding of findings) reader.find(finding);
    return [];
  }
}

/** @returns undefined when there are too many fields to compare. */
async function* findInDays(
  reader: AccountReader,
): ProgressSteps<{ readonly findings: readonly Finding[]; readonly jumped: boolean } | undefined> {
  const { tally } = reader.walk;
  const findings: Finding[] = [];
  const found = (finding: Finding) => void (findings.length < FOUND_MAX && findings.push(finding));
  const { account, storeTimeMs } = yield* reader.figures({});
  const { first, last } = tally.instants ?? { first: storeTimeMs, last: storeTimeMs };
  const liveFrom = storeTimeMs - SPAN_MARGIN_MS;
  const live = daysBetween(liveFrom, storeTimeMs + DAY_MS);
  const kept = new Map<string, UsageTotal>();
  const old = { from: Math.min(account.createdAtMs, first) - SPAN_MARGIN_MS, to: liveFrom - DAY_MS };
  const ahead = { from: storeTimeMs + 2 * DAY_MS, to: last + SPAN_MARGIN_MS };
  for (const span of [old, ahead]) yield* sumUp(reader, span, (field, sum) => addTo(kept, field, sum));
  const liveSpan = { from: liveFrom, to: storeTimeMs + DAY_MS };
  yield* sumUp(reader, liveSpan, (field) => addTo(kept, field, NO_USAGE_TOTAL));
  if (kept.size > FIELDS_MAX || !tally.fields) return undefined;
  for (const field of tally.fields.keys()) addTo(kept, field, NO_USAGE_TOTAL);
  const groups = new Map<string, GroupSums>();
  for (const fields of portions([...kept.keys()], FIGURES_FIELDS_MAX)) {
    const figures = yield* reader.figures({ spent: { days: live, fields } });
    yield* reader.walkTo(figures);
    const sums = fields.map((field) => ({
      field,
      kept: addTotals(kept.get(field) ?? NO_USAGE_TOTAL, figures.spent.get(field) ?? NO_USAGE_TOTAL),
      lines: tally.fields?.get(field) ?? NO_USAGE_TOTAL,
    }));
    for (const sum of sums) addToGroup(groups, sum);
    yield* reader.judge(figures, { fields: sums }, found);
  }
  if (tally.opening)
    yield* reader.judge(yield* reader.figures({}), { groups: withArchived(groups, tally.opening) }, found);
  const { storeTimeMs: endMs } = yield* reader.figures({});
  return { findings, jumped: Math.abs(endMs - storeTimeMs) > DAY_MS };
}

async function* sumUp(
  reader: AccountReader,
  span: Span,
  add: (field: string, sum: UsageTotal) => void,
): ProgressSteps<void> {
  for (let from = span.from; utcDay(from) <= utcDay(span.to); from += DAYS_MAX * DAY_MS) {
    const until = utcDay(Math.min(from + (DAYS_MAX - 1) * DAY_MS, span.to));
    const days = { since: utcDay(from), until };
    yield* eachPage(
      reader,
      (at) => reader.store.pageDays(reader.tag, days, at),
      (sum) => add(dayField(sum.group, sum.model, sum.key), sum),
    );
    yield* eachPage(
      reader,
      (at) => reader.store.pageUpstreamDays(reader.tag, days, at),
      (sum) => add(upstreamField(sum.upstream, sum.model), sum),
    );
  }
}

async function* eachPage<T>(
  reader: AccountReader,
  page: (cursor: string | undefined) => Promise<Page<T>>,
  add: (sum: T) => void,
): ProgressSteps<void> {
  let cursor: string | undefined;
  do {
    const at = cursor;
    const read = yield* reader.ask(() => page(at));
    for (const sum of read.items) add(sum);
    cursor = read.next;
  } while (cursor !== undefined);
}

/** Both ends included, in milliseconds; empty when `to` is before `from`. */
interface Span {
  readonly from: number;
  readonly to: number;
}

function daysBetween(fromMs: number, toMs: number): string[] {
  const days: string[] = [];
  for (let atMs = fromMs; utcDay(atMs) <= utcDay(toMs); atMs += DAY_MS) days.push(utcDay(atMs));
  return days;
}

/** Splits a list into parts of at most `size`. */
export function portions<T>(names: readonly T[], size: number): T[][] {
  const count = Math.ceil(names.length / size);
  return Array.from({ length: count }, (_, at) => names.slice(at * size, (at + 1) * size));
}

function addTo(sums: Map<string, UsageTotal>, name: string, sum: UsageTotal): void {
  if (sums.size <= FIELDS_MAX) sums.set(name, addTotals(sums.get(name) ?? NO_USAGE_TOTAL, sum));
}

function addToGroup(groups: Map<string, GroupSums>, { field, kept, lines }: FieldSums): void {
  // Sums by upstream are in the sums by group already.
  if (isUpstreamField(field)) return;
  const { group } = partsOfField(field);
  const before = groups.get(group) ?? { group, kept: NO_USAGE_TOTAL, lines: NO_USAGE_TOTAL };
  groups.set(group, { group, kept: addTotals(before.kept, kept), lines: addTotals(before.lines, lines) });
}

/** Sums by group, with the archived lines according to the opening line. */
function withArchived(groups: ReadonlyMap<string, GroupSums>, { charged, counts }: OpeningFacts): GroupSums[] {
  const names = new Set([...groups.keys(), ...charged.keys()]);
  return [...names].map((group) => {
    const { kept, lines } = groups.get(group) ?? { kept: NO_USAGE_TOTAL, lines: NO_USAGE_TOTAL };
    const archived = { ...NO_USAGE_TOTAL, amount: charged.get(group) ?? 0n, counts: counts?.get(group) ?? NO_COUNTS };
    // An opening line has no costs.
    const all = { ...addTotals(lines, archived), cost: kept.cost, absorbed: kept.absorbed };
    return { group, kept, lines: counts ? all : { ...all, counts: kept.counts } };
  });
}
