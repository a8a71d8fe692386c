/**
 * Budgets of keys and of accounts: what is spent and held in a UTC day, in a week from Monday, in a month, or in total.
 * Each keeps the figures of its current period and of the one before, in which long requests end.
 * `redis/lua/budgets.lua` has the same arithmetic, line by line; the differential test compares the two.
 */
import { NANO_USD_MAX } from "../../values/money.ts";
import { BUDGET_SPANS, type BudgetSpan } from "./limits.ts";

const DAY_MS = 86_400_000;
/** 1970-01-01 was a Thursday. */
const DAYS_TO_MONDAY = 3;

/** Whose budget, and its span. In a hold it is written like `d20775`; an account's letter is uppercase. */
export interface BudgetName {
  readonly ofAccount: boolean;
  readonly span: BudgetSpan;
}

/** What is spent and held of a budget in one period, both in nano-dollars. */
interface BudgetSums {
  /** Days, weeks or months since the epoch; 0 for a budget without an end. */
  readonly period: number;
  readonly spent: bigint;
  readonly held: bigint;
}

/** A budget's figures of the latest period with a charge or hold, and of the period that was the latest before it. */
export interface BudgetCounts {
  readonly now: BudgetSums;
  /** Period 0: none. */
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

/**
 * The figures with those of `period` among them: as the latest, unless a later one is recorded. A clock that goes back
 * reopens no period.
 */
export function movedOn(counts: BudgetCounts | undefined, period: number): BudgetCounts {
  if (counts === undefined) return { now: none(period), before: none(0) };
  if (period <= counts.now.period || period === counts.before.period) return counts;
  return { now: none(period), before: counts.now };
}

/**
 * The same for the current period. A later period goes on if it is the next one. Any other was recorded while the clock
 * was wrong, or the clock is wrong now: its figures stay as those of the period before, and the budget continues in the
 * current one. Otherwise it would not begin again until the clock is there.
 */
export function asOfNow(counts: BudgetCounts | undefined, period: number): BudgetCounts {
  if (counts === undefined || counts.now.period === period) return movedOn(counts, period);
  const { now, before } = counts;
  const [later, earlier] = now.period >= before.period ? [now, before] : [before, now];
  if (later.period <= period + 1) {
    return later.period < period ? { now: none(period), before: later } : { now: later, before: earlier };
  }
  if (earlier.period >= period && earlier.period <= period + 1) return { now: earlier, before: later };
  return { now: none(period), before: earlier.period > 0 && earlier.period < period ? earlier : later };
}

/** Where a period's figures are; undefined: it ended so long ago that nothing is kept of it. */
export function placeOf({ now, before }: BudgetCounts, period: number): keyof BudgetCounts | undefined {
  if (period === now.period) return "now";
  return period === before.period && period !== 0 ? "before" : undefined;
}

/** Adds to the figures of one of the two periods. */
export function added(counts: BudgetCounts, place: keyof BudgetCounts, spent: bigint, held: bigint): BudgetCounts {
  const sums = counts[place];
  const total = sums.spent + spent;
  return {
    ...counts,
    [place]: { ...sums, spent: total < NANO_USD_MAX ? total : NANO_USD_MAX, held: sums.held + held },
  };
}

/** What a request is counted in besides the limits of its group, as its hold records it. */
interface CountedIn {
  /** Counted in its key's requests in flight, and in its key's tokens per minute. */
  readonly inFlight: boolean;
  readonly tokens: boolean;
  readonly budgets: readonly (BudgetName & { readonly period: number })[];
}

const LETTERS: Readonly<Record<BudgetSpan, string>> = { day: "d", week: "w", month: "m", total: "t" };
const SPANS = Object.fromEntries(BUDGET_SPANS.map((span) => [LETTERS[span], span])) as Readonly<
  Record<string, BudgetSpan>
>;

/** The letter of a budget: `d`, `w`, `m` or `t`; uppercase for an account's budget. */
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

/** Like `c k d20775 D20775`; empty if the request is counted in nothing. */
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
