/**
 * Limits of a key, in addition to those of its group, and of an account: what they allow, and the text in which a store
 * keeps them. `redis/lua/limits.lua` reads that text and decides the same. A key has two sets, its owner's limits and
 * the operator's caps. Only what both allow is allowed, so the stricter figure of each kind applies.
 */

import { byText } from "../../values/collections/by-text.ts";
import { type NanoUsd, parseNano } from "../../values/money.ts";
import { blockBits } from "./address-bits.ts";

/** Spans of a budget: a UTC day, a week from Monday, a calendar month, and one without an end. */
export const BUDGET_SPANS = ["day", "week", "month", "total"] as const;
export type BudgetSpan = (typeof BUDGET_SPANS)[number];

/** One set of limits. An absent member means unlimited. */
export interface LimitSet {
  /** The most that may be spent in each span. */
  readonly budgets?: Partial<Readonly<Record<BudgetSpan, NanoUsd>>>;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  /** Requests in flight. */
  readonly concurrency?: number;
  /** Names of models, or prefixes that end with `*`. */
  readonly models?: readonly string[];
  /** CIDR blocks and addresses from which requests are accepted. */
  readonly addresses?: readonly string[];
}

export const NO_LIMITS_SET: LimitSet = Object.freeze({});

interface StoredLimits {
  readonly day?: string;
  readonly week?: string;
  readonly month?: string;
  readonly total?: string;
  readonly rpm?: string;
  readonly tpm?: string;
  readonly par?: string;
  readonly models?: readonly string[];
  /** Each block as written, and its bits. */
  readonly from?: readonly (readonly [block: string, bits: string])[];
}

/** Limits as a store keeps them; empty when nothing is limited. */
export function limitsText(limits: LimitSet): string {
  const { budgets = {}, requestsPerMinute, tokensPerMinute, concurrency, models, addresses } = limits;
  const stored: StoredLimits = {
    ...Object.fromEntries(
      BUDGET_SPANS.flatMap((span) => (budgets[span] === undefined ? [] : [[span, `${budgets[span]}`]])),
    ),
    ...(requestsPerMinute !== undefined && { rpm: `${requestsPerMinute}` }),
    ...(tokensPerMinute !== undefined && { tpm: `${tokensPerMinute}` }),
    ...(concurrency !== undefined && { par: `${concurrency}` }),
    ...(models !== undefined && { models }),
    ...(addresses !== undefined && { from: addresses.map((block) => [block, blockBits(block) ?? "-"] as const) }),
  };
  return Object.keys(stored).length === 0 ? "" : JSON.stringify(stored);
}

const remembered = byText((text) => limitsOf(JSON.parse(text) as StoredLimits));

/** Reads a text made by `limitsText`. @throws TypeError, SyntaxError for another text. */
export const readLimitsText = (text: string): LimitSet => (text === "" ? NO_LIMITS_SET : remembered(text));

function limitsOf({ rpm, tpm, par, models, from, ...spans }: StoredLimits): LimitSet {
  const budgets = Object.fromEntries(
    BUDGET_SPANS.flatMap((span) => (spans[span] === undefined ? [] : [[span, nanoOf(spans[span])]])),
  );
  return {
    ...(Object.keys(budgets).length > 0 && { budgets }),
    ...(rpm !== undefined && { requestsPerMinute: Number(rpm) }),
    ...(tpm !== undefined && { tokensPerMinute: Number(tpm) }),
    ...(par !== undefined && { concurrency: Number(par) }),
    ...(models !== undefined && { models }),
    ...(from !== undefined && { addresses: from.map(([block]) => block) }),
  };
}

function nanoOf(text: string): NanoUsd {
  const amount = parseNano(text);
  if (amount === undefined) throw new TypeError("a budget is an amount");
  return amount;
}

/** Whether a model may be used. */
export function allowsModel({ models }: LimitSet, model: string): boolean {
  if (models === undefined) return true;
  return models.some((name) => (name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : model === name));
}

/** Whether a request may come from an address. @param bits made by `addressBits`; empty: unknown. */
export function allowsAddress({ addresses }: LimitSet, bits: string): boolean {
  if (addresses === undefined) return true;
  return bits !== "" && prefixesOf(addresses).some((prefix) => bits.startsWith(prefix));
}

/** The bits of each list of blocks, cached: each request of a key needs them, and there may be many. */
const prefixes = new WeakMap<readonly string[], readonly string[]>();

function prefixesOf(addresses: readonly string[]): readonly string[] {
  const known = prefixes.get(addresses);
  if (known) return known;
  const made = addresses.map((block) => blockBits(block) ?? "-");
  prefixes.set(addresses, made);
  return made;
}

/** The strictest figure of each kind from several sets. */
export function strictest(
  sets: readonly LimitSet[],
): Pick<LimitSet, "budgets" | "requestsPerMinute" | "tokensPerMinute" | "concurrency"> {
  const least = <T extends bigint | number>(values: readonly (T | undefined)[]): T | undefined =>
    values.reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined);
  const budgets: Partial<Record<BudgetSpan, NanoUsd>> = {};
  for (const span of BUDGET_SPANS) {
    const budget = least(sets.map((limits) => limits.budgets?.[span]));
    if (budget !== undefined) budgets[span] = budget;
  }
  const rpm = least(sets.map(({ requestsPerMinute }) => requestsPerMinute));
  const tpm = least(sets.map(({ tokensPerMinute }) => tokensPerMinute));
  const concurrency = least(sets.map((limits) => limits.concurrency));
  return {
    budgets,
    ...(rpm !== undefined && { requestsPerMinute: rpm }),
    ...(tpm !== undefined && { tokensPerMinute: tpm }),
    ...(concurrency !== undefined && { concurrency }),
  };
}
