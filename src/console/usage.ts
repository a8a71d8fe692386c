/**
 * What accounts have spent, from the sums that are kept per day: never from the ledger's history.
 */

import type { Store } from "../store/contract.ts";
import {
  addTotals,
  type DaySpan,
  NO_USAGE_TOTAL,
  readSpan,
  sumBy,
  totalOf,
  type UsageTotal,
} from "../store/day-sums.ts";
import type { Account } from "../store/records.ts";
import { accountNamed, readLimit } from "./accounts.ts";
import { UsagePage } from "./answers.ts";
import { showUsageTotal } from "./present.ts";
import { malformed } from "./refusal.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./route.ts";
import { USAGE_PAGE_MAX, UsageQuery } from "./schema.ts";

type By = "account" | "group" | "model" | "key" | "day";

export function usageRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store, clock } = parts;
  return [
    route({
      method: "GET",
      path: "/usage",
      id: "showUsage",
      summary: "What was spent, per UTC day of the request, over a page of accounts",
      answers: { 200: UsagePage },
      refusals: { 404: "`unknown_account`." },
      query: UsageQuery,
      async handle({ query }) {
        const span = readSpan(query, clock.wallMs());
        if ("rule" in span) throw malformed(span.member, span.rule, "Days are UTC; leave both out for the last 30.");
        const page = await accountsOf(store, query.account, query.cursor, readLimit(query.limit, USAGE_PAGE_MAX));
        const by = (query.by ?? "account") as By;
        const totals = await sumUp(store, page.items, span, by);
        const items = [...totals].map(([name, one]) => ({ [by]: name, ...showUsageTotal(one) }));
        const total = showUsageTotal([...totals.values()].reduce(addTotals, NO_USAGE_TOTAL));
        return { status: 200, body: { ...span, by, items, total, total_usd: total.usd, next: page.next ?? null } };
      },
    }),
  ];
}

async function accountsOf(
  store: Store,
  name: string | undefined,
  cursor: string | undefined,
  limit: number,
): Promise<{ items: readonly Account[]; next?: string | undefined }> {
  if (name !== undefined) return { items: [await accountNamed(store, name)] };
  return store.listAccounts(cursor, limit);
}

/** One account after another, so that a page costs no more at a time than one account does. */
async function sumUp(
  store: Store,
  accounts: readonly Account[],
  { since, until }: DaySpan,
  by: By,
): Promise<ReadonlyMap<string, UsageTotal>> {
  const totals = new Map<string, UsageTotal>();
  for (const { name, tag } of accounts) {
    const sums = await store.readDays(tag, since, until);
    const parts = by === "account" ? new Map([[name, totalOf(sums)]]) : sumBy(sums, by);
    for (const [value, one] of parts) totals.set(value, addTotals(totals.get(value) ?? NO_USAGE_TOTAL, one));
  }
  return new Map([...totals].sort(([a], [b]) => (a < b ? -1 : 1)));
}
