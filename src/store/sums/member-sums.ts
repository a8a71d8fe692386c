/** What an account spent in a span of days, summed up by day, group, model and key at once. */
import { setImmediate } from "node:timers/promises";
import type { AccountTag } from "../../values/key.ts";
import type { Store } from "../contract.ts";
import { addSums, type DaySpan, type SumMember, type UsageTotal } from "./day-sums.ts";

type MemberTotals = Readonly<Record<SumMember, Map<string, UsageTotal>>>;

/**
 * Works in parts, so that a long span of a large account blocks no request.
 * @throws StoreError
 */
export async function sumByMember(
  store: Pick<Store, "pageDays">,
  tag: AccountTag,
  span: DaySpan,
): Promise<MemberTotals> {
  const sums: MemberTotals = { day: new Map(), group: new Map(), model: new Map(), key: new Map() };
  let cursor: string | undefined;
  do {
    const page = await store.pageDays(tag, span, cursor);
    for (const member of ["day", "group", "model", "key"] as const) addSums(sums[member], page.items, member);
    cursor = page.next;
    if (cursor !== undefined) await setImmediate();
  } while (cursor !== undefined);
  return sums;
}
