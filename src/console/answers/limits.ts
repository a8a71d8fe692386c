/** The forms of limits and budgets in the admin API, and their conversion from the store's form. */
import { asOfNow, type BudgetCounts, budgetField, periodEndMs, periodOf } from "../../store/limits/budgets.ts";
import { BUDGET_SPANS, type LimitSet, readLimitsText, strictest } from "../../store/limits/limits.ts";
import type { Key } from "../../store/records.ts";
import { formatUsd } from "../../values/money.ts";
import type { Static } from "../vocabulary.ts";
import { count, instant, list, object, oneOf, orNull, text, usd } from "./shape.ts";

const BUDGETS = object("Budgets", {
  day: orNull(usd("The maximum per UTC day; null: no such limit", "5.00")),
  week: orNull(usd("The maximum per week from Monday, UTC; null: no such limit", "20.00")),
  month: orNull(usd("The maximum per calendar month, UTC; null: no such limit", "50.00")),
  total: orNull(usd("The maximum in total; null: no such limit", "100.00")),
});

export const KEY_LIMITS = object("KeyLimits", {
  budgets_usd: BUDGETS,
  requests_per_minute: orNull(count("Requests per minute; null: no such limit.", 60)),
  tokens_per_minute: orNull(count("Tokens per minute; null: no such limit.", 100_000)),
  concurrency: orNull(count("Requests at once; null: no such limit.", 5)),
  models: orNull(list(text("A model name, or a prefix of model names followed by *.", "small-*"))),
  addresses: orNull(list(text("An address, or a CIDR block.", "192.0.2.0/24"))),
});
export type KeyLimitsAnswer = Static<typeof KEY_LIMITS>;

export const ACCOUNT_LIMITS = object("AccountLimits", {
  budgets_usd: object("AccountBudgets", {
    day: orNull(usd("The maximum per UTC day over all keys; null: no such limit", "5.00")),
    month: orNull(usd("The maximum per calendar month, UTC, over all keys; null: no such limit", "50.00")),
  }),
});
type AccountLimitsAnswer = Static<typeof ACCOUNT_LIMITS>;

const BudgetUse = object("BudgetUse", {
  span: oneOf("The period of the budget.", ...BUDGET_SPANS),
  limit_usd: usd("The budget", "5.00"),
  spent_usd: usd("What was charged in this period so far", "1.20"),
  held_usd: usd("What running requests hold of it", "0.25"),
  rest_usd: usd("What a new request may still hold of it", "3.55"),
  resets_at: orNull(instant("When the budget resets; null: never.")),
});
type BudgetUseAnswer = Static<typeof BudgetUse>;
export const BUDGET_USES = list(BudgetUse);

const budgetUsd = (amount: bigint | undefined) => (amount === undefined ? null : formatUsd(amount));

/** The limits, or the caps, of a key. */
export function showKeyLimits(stored: string): KeyLimitsAnswer {
  const { budgets = {}, requestsPerMinute, tokensPerMinute, concurrency, models, addresses } = readLimitsText(stored);
  const { day, week, month, total } = budgets;
  return {
    budgets_usd: { day: budgetUsd(day), week: budgetUsd(week), month: budgetUsd(month), total: budgetUsd(total) },
    requests_per_minute: requestsPerMinute ?? null,
    tokens_per_minute: tokensPerMinute ?? null,
    concurrency: concurrency ?? null,
    models: models ?? null,
    addresses: addresses ?? null,
  };
}

export function showAccountLimits(stored: string): AccountLimitsAnswer {
  const { day, month } = readLimitsText(stored).budgets ?? {};
  return { budgets_usd: { day: budgetUsd(day), month: budgetUsd(month) } };
}

type Used = ReadonlyMap<string, BudgetCounts>;

/** The use of a key's budgets, each by the stricter of its limit and its cap. */
export function showKeyBudgets(key: Pick<Key, "id" | "limits" | "caps">, used: Used, nowMs: number): BudgetUseAnswer[] {
  const effective = strictest([readLimitsText(key.limits), readLimitsText(key.caps)]);
  return showBudgets(effective, used, nowMs, { ofAccount: false, keyId: key.id });
}

/** The use of an account's budgets. */
export function showAccountBudgets(limits: string, used: Used, nowMs: number): BudgetUseAnswer[] {
  return showBudgets(readLimitsText(limits), used, nowMs, { ofAccount: true, keyId: "" });
}

function showBudgets(
  { budgets = {} }: Pick<LimitSet, "budgets">,
  used: Used,
  nowMs: number,
  { ofAccount, keyId }: { readonly ofAccount: boolean; readonly keyId: string },
): BudgetUseAnswer[] {
  return BUDGET_SPANS.flatMap((span): BudgetUseAnswer[] => {
    const limit = budgets[span];
    if (limit === undefined) return [];
    const { now } = asOfNow(used.get(budgetField({ span, ofAccount }, keyId)), periodOf(span, nowMs));
    const rest = limit - now.spent - now.held;
    const endMs = periodEndMs(span, now.period);
    return [
      {
        span,
        limit_usd: formatUsd(limit),
        spent_usd: formatUsd(now.spent),
        held_usd: formatUsd(now.held),
        rest_usd: formatUsd(rest > 0n ? rest : 0n),
        resets_at: endMs === undefined ? null : new Date(endMs).toISOString(),
      },
    ];
  });
}
