/**
 * Budgets of keys and of accounts: what is spent, and held, in a UTC day, in a week from Monday, in a month, or in all. Each
 * keeps the figures of its span and of the one before, in which long requests end. The Lua in `redis/lua/budgets.lua` is the
 * same arithmetic, line by line; the differential test compares them.
 */
import { NANO_USD_MAX } from "../../values/money.ts";
import { BUDGET_SPANS, type BudgetSpan } from "./limits.ts";

const DAY_MS = 86_400_000;
/** 1970-01-01 was a Thursday. */
const DAYS_TO_MONDAY = 3;

/** Whose budget, and of which span; `d20775` in a hold, the account's in capitals. */
export interface BudgetName {
  readonly ofAccount: boolean;
  readonly span: BudgetSpan;
}

/** What is spent and held of a budget, both in nano-dollars. */
interface BudgetSums {
  /** Days, weeks or months since the epoch; 0 for one without an end. */
  readonly period: number;
  readonly spent: bigint;
  readonly held: bigint;
}

/** A budget's figures of the latest span that was charged or held in, and of the one that was so before it. */
export interface BudgetCounts {
  readonly now: BudgetSums;
  /** Period 0: there is none. */
  readonly before: BudgetSums;
}

/** The number of the day, week or month of an instant; 0 for a budget without an end. */
export function periodOf(span: BudgetSpan, ms: number): number {
  const day = Math.floor(ms / DAY_MS);
  if (span === "day") return day;
  if (span === "week") return Math.floor((day + DAYS_TO_MONDAY) / 7);
  if (span === "total") return 0;
  const date = new Date(ms);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** The first instant after a period, milliseconds since the epoch; undefined for a budget without an end. */
export function periodEndMs(span: BudgetSpan, period: number): number | undefined {
  if (span === "day") return (period + 1) * DAY_MS;
  if (span === "week") return ((period + 1) * 7 - DAYS_TO_MONDAY) * DAY_MS;
  return span === "total" ? undefined : Date.UTC(Math.floor((period + 1) / 12), (period + 1) % 12, 1);
}

const none = (period: number): BudgetSums => ({ period, spent: 0n, held: 0n });

/** The figures with a period for their latest, where that is not over: a clock that goes back opens no period again. */
export function movedOn(counts: BudgetCounts | undefined, period: number): BudgetCounts {
  if (counts === undefined) return { now: none(period), before: none(0) };
  return period > counts.now.period ? { now: none(period), before: counts.now } : counts;
}

/** Where a period's figures stand; undefined: it is over for so long that nothing is kept of it. */
export function placeOf({ now, before }: BudgetCounts, period: number): keyof BudgetCounts | undefined {
  if (period === now.period) return "now";
  return period === before.period && period !== 0 ? "before" : undefined;
}

/** Adds to the figures of a place. */
export function added(counts: BudgetCounts, place: keyof BudgetCounts, spent: bigint, held: bigint): BudgetCounts {
  const sums = counts[place];
  const total = sums.spent + spent;
  return {
    ...counts,
    [place]: { ...sums, spent: total < NANO_USD_MAX ? total : NANO_USD_MAX, held: sums.held + held },
  };
}

/** What a request counts in beside the limits of its group, as its hold says it. */
interface CountedIn {
  /** Among its key's requests at once, and in its key's tokens per minute. */
  readonly inFlight: boolean;
  readonly tokens: boolean;
  readonly budgets: readonly (BudgetName & { readonly period: number })[];
}

const LETTERS: Readonly<Record<BudgetSpan, string>> = { day: "d", week: "w", month: "m", total: "t" };
const SPANS = Object.fromEntries(BUDGET_SPANS.map((span) => [LETTERS[span], span])) as Readonly<
  Record<string, BudgetSpan>
>;

/** The letter of a budget: `d`, `w`, `m`, `t`, of an account `D` and so on. */
function letterOf({ span, ofAccount }: BudgetName): string {
  return ofAccount ? LETTERS[span].toUpperCase() : LETTERS[span];
}

/** The name under which a store keeps a budget's figures. */
export function budgetField(name: BudgetName, keyId: string): string {
  return name.ofAccount ? letterOf(name) : `${letterOf(name)}/${keyId}`;
}

/** The budget of a letter; undefined for another text. */
export function budgetOfLetter(letter: string): BudgetName | undefined {
  const span = SPANS[letter.toLowerCase()];
  return span && { span, ofAccount: letter !== letter.toLowerCase() };
}

/** `c k d20775 D20775`; empty where nothing is counted. */
export function countedText({ inFlight, tokens, budgets }: CountedIn): string {
  return [
    ...(inFlight ? ["c"] : []),
    ...(tokens ? ["k"] : []),
    ...budgets.map((budget) => `${letterOf(budget)}${budget.period}`),
  ].join(" ");
}

export function readCounted(text: string): CountedIn {
  if (text === "") return NOTHING_COUNTED;
  const budgets: (BudgetName & { period: number })[] = [];
  const words = text.split(" ");
  for (const word of words) {
    const name = budgetOfLetter(word.slice(0, 1));
    if (name) budgets.push({ ...name, period: Number(word.slice(1)) });
  }
  return { inFlight: words.includes("c"), tokens: words.includes("k"), budgets };
}

const NOTHING_COUNTED: CountedIn = { inFlight: false, tokens: false, budgets: [] };
