/** Budgets of the embedded store: what is spent stands in the database, what is held in memory. `redis/lua/budgets.lua` does the same. */
import type { AccountTag } from "../../values/key.ts";
import { added, type BudgetCounts, budgetField, movedOn, placeOf, readCounted } from "../limits/budgets.ts";
import { BUDGET_SPANS, type LimitSet, readLimitsText, strictest } from "../limits/limits.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database.ts";
import { heldName } from "./live.ts";

/** The figures of a budget as they were left; undefined: nothing was ever held of it. */
export function findBudget(context: Context, tag: AccountTag, field: string): BudgetCounts | undefined {
  const row = context.db.get("SELECT * FROM budgets WHERE tag = ? AND field = ?", tag, field);
  return row && toCounts(context, tag, row);
}

function toCounts(context: Context, tag: AccountTag, row: Row): BudgetCounts {
  const field = row.field as string;
  const sums = (period: number, spent: Row[string] | undefined) => {
    const held = context.live(tag).heldByBudget.get(heldName(field, period)) ?? 0n;
    return { period, spent: spent as bigint, held };
  };
  const now = sums(Number(row.period), row.spent);
  const beforePeriod = Number(row.before_period);
  const before = beforePeriod === 0 ? { period: 0, spent: 0n, held: 0n } : sums(beforePeriod, row.before_spent);
  return { now, before };
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

/** Keeps the period in which a request begins to hold of a budget, unless it is the latest already. */
export function openPeriod(context: Context, tag: AccountTag, field: string, counts: BudgetCounts): void {
  const known = findBudget(context, tag, field);
  if (known?.now.period === counts.now.period) return;
  context.db.commitNormal(() => write(context, tag, field, counts));
}

function write({ db }: Context, tag: AccountTag, field: string, { now, before }: BudgetCounts): void {
  db.run(
    `INSERT OR REPLACE INTO budgets (tag, field, period, spent, before_period, before_spent) VALUES (?, ?, ?, ?, ?, ?)`,
    ...[tag, field, now.period, now.spent, before.period, before.spent],
  );
}

/** The limits of a key and of its account as they are now, not as they were when a request began. */
export function limitsNow(
  context: Context,
  tag: AccountTag,
  keyId: string,
): { readonly ofKey: LimitSet; readonly ofAccount: LimitSet } {
  const row = context.db.get("SELECT limits, caps FROM keys WHERE tag = ? AND id = ?", tag, keyId);
  const ofKey = row ? strictest([row.limits, row.caps].map((text) => readLimitsText(text as string))) : {};
  return { ofKey, ofAccount: readLimitsText(context.account(tag)?.limits ?? "") };
}

/** What a request counts in, and whose hold of its budgets it is. */
export interface CountedRequest {
  readonly keyId: string;
  /** `countedText`. */
  readonly counted: string;
}

/**
 * What the budgets of a request leave beyond all holds.
 * @param own what it holds itself, which is not taken off.
 * @returns undefined where none limits it.
 */
export function budgetRest(
  context: Context,
  tag: AccountTag,
  { keyId, counted }: CountedRequest,
  own: bigint,
): bigint | undefined {
  if (counted === "") return undefined;
  const { ofKey, ofAccount } = limitsNow(context, tag, keyId);
  let rest: bigint | undefined;
  for (const budget of readCounted(counted).budgets) {
    const limit = (budget.ofAccount ? ofAccount : ofKey).budgets?.[budget.span];
    const counts = movedOn(findBudget(context, tag, budgetField(budget, keyId)), budget.period);
    const place = placeOf(counts, budget.period);
    if (limit === undefined || place === undefined) continue;
    const left = limit - counts[place].spent - (counts[place].held - own);
    if (rest === undefined || left < rest) rest = left;
  }
  return rest;
}

/** The same for the periods that a hold counts in, before it is raised: one of nothing has opened none. */
export function openCounted(context: Context, tag: AccountTag, { keyId, counted }: CountedRequest): void {
  for (const budget of readCounted(counted).budgets) {
    const field = budgetField(budget, keyId);
    const counts = movedOn(findBudget(context, tag, field), budget.period);
    if (placeOf(counts, budget.period)) openPeriod(context, tag, field, counts);
  }
}

/** Counts a charge in the budgets of its request, within the running transaction. */
export function spend(context: Context, tag: AccountTag, { keyId, counted }: CountedRequest, charged: bigint): void {
  if (charged === 0n) return;
  for (const budget of readCounted(counted).budgets) {
    const field = budgetField(budget, keyId);
    const counts = movedOn(findBudget(context, tag, field), budget.period);
    const place = placeOf(counts, budget.period);
    if (place) write(context, tag, field, added(counts, place, charged, 0n));
  }
}
