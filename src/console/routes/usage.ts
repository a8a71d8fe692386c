/**
 * What accounts have spent, from their daily sums, never from ledger lines. An answer ends after about a second, in the
 * middle of an account's days if necessary; the figures of all pages are to be added up.
 */

import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import type { AccountName } from "../../store/records.ts";
import {
  addSums,
  addTotals,
  type DaySpan,
  inOrder,
  NO_USAGE_TOTAL,
  readSpan,
  startOfDay,
  totalOf,
  type UsageTotal,
} from "../../store/sums/day-sums.ts";
import type { Clock } from "../../values/time.ts";
import { UpstreamUsagePage, UsagePage } from "../answers/answers.ts";
import { showCostedTotal } from "../answers/present.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { readLimit } from "../input/parameters.ts";
import { nextAccountName } from "../named-accounts.ts";
import { malformed, noSuchAccount } from "../refusal.ts";
import { closed, Day, Name, Place, pageSize, type Static, Type, USAGE_BY, type UsageBy } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** Maximum number of accounts per page. */
const USAGE_PAGE_MAX = 200;

const UpstreamName = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
  description: "the name of an upstream, 1 to 64 characters of A-Z a-z 0-9 . _ -, beginning with a letter or digit",
  "x-remedy": "Take the name from the configuration, or from tollgate usage --by upstream.",
  examples: ["east"],
});

const UsageQuery = Type.Object(
  {
    account: Type.Optional(Name),
    by: Type.Optional(
      Type.Unsafe<UsageBy>(
        Type.Union(
          USAGE_BY.map((by) => Type.Literal(by)),
          {
            description: `one of ${USAGE_BY.join(", ")}`,
            "x-remedy": "Leave it out for one line per account.",
          },
        ),
      ),
    ),
    since: Type.Optional(Day),
    until: Type.Optional(Day),
    cursor: Type.Optional(Place),
    limit: Type.Optional(pageSize(USAGE_PAGE_MAX)),
  },
  closed,
);

const UpstreamUsageQuery = Type.Object(
  {
    since: Type.Optional(Day),
    until: Type.Optional(Day),
    cursor: Type.Optional(Place),
    limit: Type.Optional(pageSize(USAGE_PAGE_MAX)),
  },
  closed,
);

const UpstreamPath = Type.Object({ upstream: UpstreamName }, closed);

/** An answer ends after this time with its results so far. */
const ANSWER_MS = 1_000;

export function usageRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store, clock } = parts;
  return [
    route({
      method: "GET",
      path: "/usage",
      id: "showUsage",
      summary:
        "Show what was charged, what it cost and what was absorbed, per UTC day of the request, over a page of accounts",
      description:
        "An answer ends after about a second; continue with `next`, which may be in the middle of an account. Add up the figures " +
        "of all pages for the same account, group, model, key, day or upstream.",
      answers: { 200: UsagePage },
      refusals: { 404: "`unknown_account`." },
      query: UsageQuery,
      async handle({ query }) {
        const place = readPlace(query, clock);
        const by = query.by ?? "account";
        const totals: Totals = new Map();
        const most = readLimit(query.limit, USAGE_PAGE_MAX);
        const next = await usagePage(parts, place, { account: query.account, most }, readerOf(store, by, totals));
        const items = [...inOrder(totals)].map(([name, one]) => ({ [by]: name, ...showCostedTotal(one) }));
        const total = showCostedTotal(totalOf(totals.values()));
        const { since, until } = place.span;
        return { status: 200, body: { since, until, by, items, total, total_usd: total.usd, next } };
      },
    }),
    route({
      method: "GET",
      path: "/upstreams/:upstream/usage",
      id: "showUpstreamUsage",
      summary:
        "Show what an upstream is expected to bill, per UTC day of the request and model, over a page of accounts",
      description:
        "An answer ends after about a second; continue with `next`, which may be in the middle of an account. Add up the figures " +
        "of all pages for the same day and model. An unknown upstream has no items.",
      answers: { 200: UpstreamUsagePage },
      params: UpstreamPath,
      query: UpstreamUsageQuery,
      async handle({ params, query }) {
        const place = readPlace(query, clock);
        const totals: Totals = new Map();
        const most = readLimit(query.limit, USAGE_PAGE_MAX);
        const read = upstreamReader(store, params.upstream, totals);
        const next = await usagePage(parts, place, { account: undefined, most }, read);
        const items = [...inOrder(totals)].map(([place, one]) => {
          const [day, model] = JSON.parse(place) as [string, string];
          return { day, model, ...showCostedTotal(one) };
        });
        const { since, until } = place.span;
        return { status: 200, body: { since, until, upstream: params.upstream, items, next } };
      },
    }),
  ];
}

type Totals = Map<string, UsageTotal>;

/** Reads a step of an account's days and adds it to the totals; returns the cursor of the next step. */
type StepReader = (account: AccountName, span: DaySpan, cursor: string | undefined) => Promise<string | undefined>;

function readerOf(store: Store, by: UsageBy, totals: Totals): StepReader {
  if (by === "upstream") {
    return async ({ tag }, span, cursor) => {
      const page = await store.pageUpstreamDays(tag, span, cursor);
      addSums(totals, page.items, by);
      return page.next;
    };
  }
  return async ({ tag, name }, span, cursor) => {
    const page = await store.pageDays(tag, span, cursor);
    if (by === "account") addTo(totals, name, totalOf(page.items));
    else addSums(totals, page.items, by);
    return page.next;
  };
}

function upstreamReader(store: Store, upstream: string, totals: Totals): StepReader {
  return async ({ tag }, span, cursor) => {
    const page = await store.pageUpstreamDays(tag, span, cursor);
    for (const sum of page.items) {
      if (sum.upstream === upstream) addTo(totals, JSON.stringify([sum.day, sum.model]), sum);
    }
    return page.next;
  };
}

/** Where a list continues: after an account, and within the days of the one after it. */
interface UsageCursor {
  readonly span: DaySpan;
  /** The last complete account; empty before the first. */
  readonly after: string;
  /** The cursor within the days of the next account; empty at their beginning. */
  readonly days: string;
}

/** The span of the first page is kept, so that midnight does not move it. @throws AdminRefusal 400 */
function readPlace({ since, until, cursor }: Static<typeof UsageQuery>, clock: Clock): UsageCursor {
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

/** @returns the cursor of the next page; null after the last one */
async function usagePage(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { span, after, days }: UsageCursor,
  { account, most }: { readonly account: string | undefined; readonly most: number },
  read: StepReader,
): Promise<string | null> {
  const endMs = clock.monotonicMs() + ANSWER_MS;
  const nextAt = (name: string, cursor: string) => writeCursor([span.since, span.until, name, cursor]);
  let last = after;
  let cursor = days;
  for (let accounts = 0; ; ) {
    const found = await accountAt(store, last, account);
    if (!found) return null;
    const next = await read(found, span, cursor === "" ? undefined : cursor);
    cursor = next ?? "";
    if (next === undefined) {
      if (account !== undefined) return null;
      accounts += 1;
      last = found.name;
    }
    if (accounts >= most || clock.monotonicMs() >= endMs) return nextAt(last, cursor);
    await setImmediate();
  }
}

function addTo(totals: Totals, name: string, more: UsageTotal): void {
  totals.set(name, addTotals(totals.get(name) ?? NO_USAGE_TOTAL, more));
}

async function accountAt(store: Store, after: string, name: string | undefined): Promise<AccountName | undefined> {
  if (name === undefined) return nextAccountName(store, after);
  const found = await store.findAccountName(name);
  if (!found) throw noSuchAccount(name);
  return found;
}
