/**
 * Budgets of the embedded store: spending is in the database, held amounts are in memory. `redis/lua/budgets.lua` does
 * the same.
 */
import type { AccountTag } from "../../values/key.ts";
import { added, type BudgetCounts, budgetField, movedOn, placeOf, readCounted } from "../limits/budgets.ts";
import { BUDGET_SPANS, type LimitSet, NO_LIMITS_SET, readLimitsText, strictest } from "../limits/limits.ts";
import type { Context } from "./context.ts";
import { writeBudget } from "./database/batch.ts";
import type { Row } from "./database/database.ts";
import { heldName } from "./live.ts";

/** The stored figures of a budget; undefined: nothing was ever held of it. */
export function findBudget(context: Context, tag: AccountTag, field: string): BudgetCounts | undefined {
  const { db } = context;
  const counts = db.batch.budget(tag, field);
  if (counts) return withHeld(context, tag, field, counts);
  const row = db.getWritten("SELECT * FROM budgets WHERE tag = ? AND field = ?", tag, field);
  return row && toCounts(context, tag, row);
}

function toCounts(context: Context, tag: AccountTag, row: Row): BudgetCounts {
  const now = { period: Number(row.period), spent: row.spent as bigint, held: 0n };
  const before = { period: Number(row.before_period), spent: row.before_spent as bigint, held: 0n };
  return withHeld(context, tag, row.field as string, { now, before });
}

/** The same figures with the amounts held now. */
function withHeld(context: Context, tag: AccountTag, field: string, { now, before }: BudgetCounts): BudgetCounts {
  const sums = ({ period, spent }: BudgetCounts["now"]) => {
    return { period, spent, held: context.live(tag).heldByBudget.get(heldName(field, period)) ?? 0n };
  };
  return { now: sums(now), before: before.period === 0 ? { period: 0, spent: 0n, held: 0n } : sums(before) };
}

/** The budgets of a key that were ever used, by field. */
export function budgetsOf(context: Context, tag: AccountTag, keyId: string): ReadonlyMap<string, BudgetCounts> {
  return usedBudgets(
    context,
    tag,
    BUDGET_SPANS.map((span) => budgetField({ span, ofAccount: false }, keyId)),
  );
}

/** The budgets of an account that were ever used, by field. */
export function budgetsOfAccount(context: Context, tag: AccountTag): ReadonlyMap<string, BudgetCounts> {
  return usedBudgets(
    context,
    tag,
    BUDGET_SPANS.map((span) => budgetField({ span, ofAccount: true }, "")),
  );
}

function usedBudgets(context: Context, tag: AccountTag, fields: readonly string[]): ReadonlyMap<string, BudgetCounts> {
  return new Map(
    fields.flatMap((field) => {
      const counts = findBudget(context, tag, field);
      return counts ? [[field, counts] as const] : [];
    }),
  );
}

/** Every budget of an account and of its keys, by field. */
export function allBudgets(context: Context, tag: AccountTag): Readonly<Record<string, BudgetCounts>> {
  const rows = context.db.all("SELECT * FROM budgets WHERE tag = ? ORDER BY field", tag);
  return Object.fromEntries(rows.map((row) => [row.field as string, toCounts(context, tag, row)]));
}

/**
 * Stores the period in which a request begins to hold of a budget, unless it is the latest already.
 * @param move gives the figures with that period.
 */
export function openPeriod(
  context: Context,
  tag: AccountTag,
  field: string,
  move: (found: BudgetCounts | undefined) => BudgetCounts,
): void {
  const find = () => findBudget(context, tag, field);
  const was = find();
  const { now, before } = move(was);
  if (was?.now.period === now.period) return;
  // Read again inside: settlements that are committed first but fail are rolled back, together with their spending.
  context.db.commitNormal(() => writeBudget(context.db, tag, field, move(find())));
  // What is held in a period whose figures are no longer kept is not part of the budget any more.
  const { heldByBudget } = context.live(tag);
  for (const sums of [was?.now, was?.before]) {
    if (sums && sums.period !== now.period && sums.period !== before.period) {
      heldByBudget.delete(heldName(field, sums.period));
    }
  }
}

/**
 * The limits of a key and of its account as they are now, not as they were when a request began.
 * @returns for the key: what its owner and the operator allow together, and the operator's caps alone.
 */
export function limitsNow(
  context: Context,
  tag: AccountTag,
  keyId: string,
): { readonly ofKey: LimitSet; readonly caps: LimitSet; readonly ofAccount: LimitSet } {
  const row = context.db.getWritten("SELECT limits, caps FROM keys WHERE tag = ? AND id = ?", tag, keyId);
  const caps = row ? readLimitsText(row.caps as string) : NO_LIMITS_SET;
  const ofKey = row ? strictest([readLimitsText(row.limits as string), caps]) : NO_LIMITS_SET;
  return { ofKey, caps, ofAccount: readLimitsText(context.account(tag)?.limits ?? "") };
}

/** What a request is counted in, and the key whose budgets it holds of. */
export interface CountedRequest {
  readonly keyId: string;
  /** `countedText`. */
  readonly counted: string;
}

/**
 * What the budgets of a request leave beyond all holds.
 * @param own what the request itself holds; it is not subtracted.
 * @param whose all budgets, or only those set by the operator: the caps of the key, and those of the account.
 * @returns undefined when no budget limits it.
 */
export function budgetRest(
  context: Context,
  tag: AccountTag,
  { keyId, counted }: CountedRequest,
  own: bigint,
  whose: "all" | "operators",
): bigint | undefined {
  if (counted === "") return undefined;
  const { ofKey, caps, ofAccount } = limitsNow(context, tag, keyId);
  const bounding = whose === "all" ? ofKey : caps;
  let rest: bigint | undefined;
  for (const budget of readCounted(counted).budgets) {
    const limit = (budget.ofAccount ? ofAccount : bounding).budgets?.[budget.span];
    const counts = movedOn(findBudget(context, tag, budgetField(budget, keyId)), budget.period);
    const place = placeOf(counts, budget.period);
    if (limit === undefined || place === undefined) continue;
    const left = limit - counts[place].spent - (counts[place].held - own);
    if (rest === undefined || left < rest) rest = left;
  }
  return rest;
}

/** Opens the periods of a hold's budgets before the hold is raised, because a hold of 0 has opened none. */
export function openCounted(context: Context, tag: AccountTag, { keyId, counted }: CountedRequest): void {
  for (const budget of readCounted(counted).budgets) {
    const field = budgetField(budget, keyId);
    const counts = movedOn(findBudget(context, tag, field), budget.period);
    if (placeOf(counts, budget.period)) openPeriod(context, tag, field, (found) => movedOn(found, budget.period));
  }
}

/** The budgets of a request after a charge is counted in them, by field. */
export function budgetsAfter(
  context: Context,
  tag: AccountTag,
  { keyId, counted }: CountedRequest,
  charged: bigint,
): readonly [field: string, counts: BudgetCounts][] {
  if (charged === 0n) return [];
  return readCounted(counted).budgets.flatMap((budget) => {
    const field = budgetField(budget, keyId);
    const counts = movedOn(findBudget(context, tag, field), budget.period);
    const place = placeOf(counts, budget.period);
    return place ? [[field, added(counts, place, charged, 0n)] as [string, BudgetCounts]] : [];
  });
}
