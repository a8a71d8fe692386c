/**
 * `GET /v1/usage`: what a key's own account has, and what it has spent. Like the other side endpoints, it costs nothing
 * and needs no funds: an account must be able to see that its money or card is used up.
 */
import { showCards, showUsageTotal } from "../console/answers/present.ts";
import type { Store } from "../store/contract.ts";
import type { KeyView } from "../store/records.ts";
import { inOrder, readSpan, type SumMember, totalOf } from "../store/sums/day-sums.ts";
import { sumByMember } from "../store/sums/member-sums.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import { formatUsd } from "../values/money.ts";

export interface UsageParts {
  readonly usage: Pick<Store, "getAccount" | "pageDays" | "readLimits">;
}

/**
 * The account of a key: plan, balance, cards that have not ended, and sums of what was spent.
 * @param query `since` and `until`, UTC days, both included; by default the last 30 days.
 * @returns a refusal for invalid days.
 * @throws StoreError
 */
export async function ownUsage(
  view: KeyView,
  query: URLSearchParams,
  { usage }: UsageParts,
): Promise<object | Refusal> {
  const asked = { since: query.get("since") ?? undefined, until: query.get("until") ?? undefined };
  const span = readSpan(asked, view.storeTimeMs);
  if ("rule" in span) {
    return refusal("wrong_type", { param: span.member, detail: `"${span.member}" must be ${span.rule}.` });
  }
  const { tag, id: keyId, group } = view.key;
  const [account, sums] = await Promise.all([usage.getAccount(tag), sumByMember(usage, tag, span)]);
  // The balance at the same instant as its holds; the key's view is slightly older.
  const { id, plan, balance, held } = account ?? { ...view.account, held: 0n };
  const list = (member: SumMember) =>
    [...inOrder(sums[member])].map(([value, one]) => ({ [member]: value, ...showUsageTotal(one) }));
  const total = showUsageTotal(totalOf(sums.group.values()));
  return {
    object: "usage",
    account: {
      id,
      plan,
      balance_usd: formatUsd(balance),
      held_usd: formatUsd(held),
      available_usd: formatUsd(balance - held),
    },
    key: { id: keyId, group },
    entitlements: showCards(view.entitlements, view.storeTimeMs),
    ...span,
    total,
    total_usd: total.usd,
    by_day: list("day"),
    by_group: list("group"),
    by_model: list("model"),
    by_key: list("key"),
  };
}
