/** What is about to run out: money, cards, budgets, keys. */
import { leadOfEndMs } from "../../store/notices.ts";
import type { Account, Entitlement } from "../../store/records.ts";
import { formatUsd, parseUsd } from "../../values/money.ts";
import { showAccountBudgets, showKeyBudgets } from "../answers/limits.ts";
import type { WarningAnswer } from "../answers/own.ts";
import { showCards } from "../answers/present.ts";
import type { OwnerParts } from "./contract.ts";

const DAY_MS = 86_400_000;
/** The default if the configuration has no `notices.card_ends_within`. */
const CARD_ENDS_WITHIN_MS = DAY_MS;
const KEY_ENDS_WITHIN_MS = 7 * DAY_MS;
/** A warning for a budget or quota starts when two tenths of it are left. */
const LEFT_OF_TEN = 2n;

const NOTHING = { key_id: null, name: null, rest_usd: null, limit_usd: null, span: null, at: null, followed: false };

interface Warned {
  readonly warnings: readonly WarningAnswer[];
  readonly cards: readonly Entitlement[];
}

/** @throws StoreError */
export async function warningsOf({ store, clock, warnsAt }: OwnerParts, account: Account): Promise<Warned> {
  const { tag } = account;
  const [held, used, keys] = await Promise.all([
    store.listCards(tag),
    store.readAccountBudgets(tag),
    store.listKeys(tag),
  ]);
  const nowMs = clock.wallMs();
  const wanted = warnsAt?.();
  const { cards, storeTimeMs } = held ?? { cards: [], storeTimeMs: nowMs };
  const budgets = showAccountBudgets(account.limits, used ?? new Map(), nowMs);
  const warnings: WarningAnswer[] = [
    ...ofBalance(account, wanted?.balanceBelowNano),
    ...ofCards(cards, storeTimeMs, wanted?.cardEndsWithinMs ?? CARD_ENDS_WITHIN_MS),
    ...ofBudgets(budgets, { kind: "account_budget" }),
    ...keys
      .filter(({ status }) => status === "normal")
      .flatMap((key): readonly WarningAnswer[] => {
        const named = { key_id: key.id, name: key.name || null };
        const endMs = key.expiresAtMs ?? Number.POSITIVE_INFINITY;
        if (endMs <= nowMs) return [];
        const ends = endMs - nowMs < KEY_ENDS_WITHIN_MS;
        return [
          ...ofBudgets(showKeyBudgets(key, key.budgets, nowMs), { ...named, kind: "key_budget" }),
          ...(ends ? [{ ...NOTHING, ...named, kind: "key_end", at: new Date(endMs).toISOString() } as const] : []),
        ];
      }),
  ];
  return { warnings, cards };
}

function ofBalance({ balance, notifyBelow }: Account, configured: number | undefined): readonly WarningAnswer[] {
  const below = notifyBelow ?? (configured === undefined ? undefined : BigInt(configured));
  // A threshold of zero means no notice.
  if (below === undefined || below === 0n || balance >= below) return [];
  return [{ ...NOTHING, kind: "balance", rest_usd: formatUsd(balance), limit_usd: formatUsd(below) }];
}

/** Cards that end within this time of each other count as ending together. */
const TOGETHER_MS = 60_000;

function ofCards(cards: readonly Entitlement[], nowMs: number, withinMs: number): readonly WarningAnswer[] {
  const shown = showCards(cards, nowMs);
  return shown.flatMap((card, at): readonly WarningAnswer[] => {
    if (card.state !== "running") return [];
    // They are listed in order of their ends, so later ones end later.
    const later = shown
      .slice(at + 1)
      .filter(({ group, state }) => group === card.group && (state === "running" || state === "waiting"))
      .map(({ until }) => Date.parse(until) - Date.parse(card.until));
    if (later.some((afterMs) => afterMs <= TOGETHER_MS)) return [];
    const facts = { ...NOTHING, name: card.card, at: card.until, followed: later.length > 0 };
    const untilMs = Date.parse(card.until);
    if (untilMs - nowMs <= leadOfEndMs(untilMs - Date.parse(card.from), withinMs))
      return [{ ...facts, kind: "card_end" }];
    const isUsed = card.quota_usd !== null && isNearlyUsed(card.rest_usd ?? "0.00", card.quota_usd);
    return isUsed ? [{ ...facts, kind: "card_quota", rest_usd: card.rest_usd, limit_usd: card.quota_usd }] : [];
  });
}

type BudgetUses = ReturnType<typeof showAccountBudgets>;

function ofBudgets(
  budgets: BudgetUses,
  of: Pick<WarningAnswer, "kind"> & Partial<WarningAnswer>,
): readonly WarningAnswer[] {
  return budgets
    .filter(({ rest_usd, limit_usd }) => isNearlyUsed(rest_usd, limit_usd))
    .map(({ rest_usd, limit_usd, span, resets_at }) => ({
      ...NOTHING,
      ...of,
      rest_usd,
      limit_usd,
      span,
      at: resets_at,
    }));
}

function isNearlyUsed(rest: string, limit: string): boolean {
  return (parseUsd(rest) ?? 0n) * 10n <= (parseUsd(limit) ?? 0n) * LEFT_OF_TEN;
}
