/** What an account was charged lately, grouped by one member of its daily sums. */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import {
  addSums,
  type DaySpan,
  daysOfSpan,
  NO_USAGE_TOTAL,
  readSpan,
  totalOf,
  type UsageTotal,
} from "../../store/sums/day-sums.ts";
import type { AccountTag } from "../../values/key.ts";
import { formatUsd } from "../../values/money.ts";
import type { Clock } from "../../values/time.ts";
import { KeySpendShape, type OverviewAnswer } from "../answers/own.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import type { OwnerParts } from "./contract.ts";
import type { OwnScope } from "./own-store.ts";

type Days = Pick<Store, "pageDays">;

/** Reads in parts, so that a large account does not delay other requests. @throws StoreError */
async function sumBy(
  store: Days,
  tag: AccountTag,
  span: DaySpan,
  member: "day" | "key",
): Promise<ReadonlyMap<string, UsageTotal>> {
  const totals = new Map<string, UsageTotal>();
  let cursor: string | undefined;
  do {
    const page = await store.pageDays(tag, span, cursor);
    addSums(totals, page.items, member);
    cursor = page.next;
    if (cursor !== undefined) await setImmediate();
  } while (cursor !== undefined);
  return totals;
}

function recentSpan(clock: Clock): DaySpan {
  const span = readSpan({}, clock.wallMs());
  if ("rule" in span) throw new RangeError("today is no day");
  return span;
}

/** The last 30 days, one by one, and their total. */
export async function recentSpend(
  store: Days,
  tag: AccountTag,
  clock: Clock,
): Promise<Omit<OverviewAnswer, "warnings" | "models">> {
  const span = recentSpan(clock);
  const byDay = await sumBy(store, tag, span, "day");
  const of = (day: string) => byDay.get(day) ?? NO_USAGE_TOTAL;
  return {
    ...span,
    today_usd: formatUsd(of(span.until).amount),
    total_usd: formatUsd(totalOf(byDay.values()).amount),
    days: daysOfSpan(span.since, span.until).map((day) => {
      const { amount, counts } = of(day);
      return { day, usd: formatUsd(amount), requests: counts.requests };
    }),
  };
}

export function keySpendRoute({ store, clock }: OwnerParts, scope: OwnScope): ConsoleRoute {
  return route({
    method: "GET",
    path: "/key-spend",
    id: "listKeySpend",
    summary: "Show what each key was charged today and in the last 30 days",
    answers: { 200: KeySpendShape },
    async handle() {
      const span = recentSpan(clock);
      const today = await sumBy(store, scope.tag, { since: span.until, until: span.until }, "key");
      const all = await sumBy(store, scope.tag, span, "key");
      const items = [...all].map(([key, { amount, counts }]) => ({
        key_id: key,
        today_usd: formatUsd((today.get(key) ?? NO_USAGE_TOTAL).amount),
        usd: formatUsd(amount),
        requests: counts.requests,
      }));
      return { status: 200, body: { ...span, items } };
    },
  });
}
