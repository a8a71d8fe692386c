/**
 * What accounts have spent, from the sums that are kept per day: never from the ledger's history. An answer ends after about
 * a second, in the middle of an account's days if need be: what the pages say of the same thing is added up.
 */

import { setImmediate } from "node:timers/promises";
import type { Store } from "../store/contract.ts";
import {
  addSums,
  addTotals,
  type DaySpan,
  inOrder,
  NO_USAGE_TOTAL,
  readSpan,
  type SumMember,
  startOfDay,
  totalOf,
  type UsageTotal,
} from "../store/day-sums.ts";
import type { AccountName } from "../store/records.ts";
import type { Clock } from "../values/time.ts";
import { nextAccountName, readLimit } from "./accounts.ts";
import { UsagePage } from "./answers.ts";
import { readCursor, writeCursor } from "./cursor.ts";
import { showUsageTotal } from "./present.ts";
import { malformed, noSuchAccount } from "./refusal.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./route.ts";
import { type Static, USAGE_PAGE_MAX, UsageQuery } from "./schema.ts";

type By = "account" | SumMember;

/** After so long an answer ends, with what it has. */
const ANSWER_MS = 1_000;

export function usageRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store, clock } = parts;
  return [
    route({
      method: "GET",
      path: "/usage",
      id: "showUsage",
      summary: "What was spent, per UTC day of the request, over a page of accounts",
      description:
        "An answer ends after about a second. `next` goes on, in the middle of an account if need be: add up what the pages " +
        "say of the same account, group, model, key or day.",
      answers: { 200: UsagePage },
      refusals: { 404: "`unknown_account`." },
      query: UsageQuery,
      async handle({ query }) {
        const place = readPlace(query, clock);
        const by = (query.by ?? "account") as By;
        const most = readLimit(query.limit, USAGE_PAGE_MAX);
        const { totals, next } = await usagePage({ store, clock }, place, { by, account: query.account, most });
        const items = [...inOrder(totals)].map(([name, one]) => ({ [by]: name, ...showUsageTotal(one) }));
        const total = showUsageTotal(totalOf(totals.values()));
        const { since, until } = place.span;
        return { status: 200, body: { since, until, by, items, total, total_usd: total.usd, next } };
      },
    }),
  ];
}

/** Where a listing goes on: behind an account, and within the days of the one behind it. */
interface Place {
  readonly span: DaySpan;
  /** The last account that was summed up; empty before the first. */
  readonly after: string;
  /** Where its days go on; empty at their beginning. */
  readonly days: string;
}

/** The span is that of the first page, so that midnight does not move it. @throws Refusal 400 */
function readPlace({ since, until, cursor }: Static<typeof UsageQuery>, clock: Clock): Place {
  if (cursor !== undefined) {
    const [from, to, after, days] = readCursor(cursor, 4) ?? [];
    if (from !== undefined && to !== undefined && after !== undefined && days !== undefined) {
      const span = readSpan({ since: from, until: to }, 0);
      const day = days.slice(0, 10);
      const isInSpan = days === "" || (startOfDay(day) !== undefined && from <= day && day <= to && days[10] === ":");
      if (!("rule" in span) && isInSpan) return { span, after, days };
    }
    throw malformed("cursor", "the `next` of an earlier page", "Leave it out for the first page.");
  }
  const span = readSpan({ since, until }, clock.wallMs());
  if ("rule" in span) throw malformed(span.member, span.rule, "Days are UTC; leave both out for the last 30.");
  return { span, after: "", days: "" };
}

async function usagePage(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { span, after, days }: Place,
  { by, account, most }: { readonly by: By; readonly account: string | undefined; readonly most: number },
): Promise<{ readonly totals: ReadonlyMap<string, UsageTotal>; readonly next: string | null }> {
  const endMs = clock.monotonicMs() + ANSWER_MS;
  const totals = new Map<string, UsageTotal>();
  const nextAt = (name: string, cursor: string) => writeCursor([span.since, span.until, name, cursor]);
  let last = after;
  let cursor = days;
  for (let accounts = 0; ; ) {
    const found = await accountAt(store, last, account);
    if (!found) return { totals, next: null };
    const page = await store.pageDays(found.tag, span, cursor === "" ? undefined : cursor);
    if (by === "account") addTo(totals, found.name, totalOf(page.items));
    else addSums(totals, page.items, by);
    cursor = page.next ?? "";
    if (page.next === undefined) {
      if (account !== undefined) return { totals, next: null };
      accounts += 1;
      last = found.name;
    }
    if (accounts >= most || clock.monotonicMs() >= endMs) return { totals, next: nextAt(last, cursor) };
    await setImmediate();
  }
}

function addTo(totals: Map<string, UsageTotal>, name: string, more: UsageTotal): void {
  totals.set(name, addTotals(totals.get(name) ?? NO_USAGE_TOTAL, more));
}

async function accountAt(store: Store, after: string, name: string | undefined): Promise<AccountName | undefined> {
  if (name === undefined) return nextAccountName(store, after);
  const found = await store.findAccountName(name);
  if (!found) throw noSuchAccount(name);
  return found;
}
