/** Computes a charge again from its ledger line: this proves that no price has been lost since. */
import { type JsonObject, objectOf, parseObject } from "./json-object.ts";
import { leastNano, type NanoUsd, nanoUsd, parseNano } from "./money.ts";
import { charge, MULTIPLIER_ONE, type Multiplier, type UnitPrices } from "./price.ts";
import { NO_USAGE, plausibleCount, plausibleTotalInput, type Usage } from "./tokens/usage.ts";

interface Recomputed {
  /** Tokens and calls at their prices, with the multiplier: the cost of a complete answer. */
  readonly cost: NanoUsd;
  /**
   * What a client owes for it. If the tokens are not the upstream's own last count, at most the hold plus the calls
   * beyond it.
   */
  readonly owed: NanoUsd;
}

/** A parsed memo, for callers that read more than one thing from it. */
export interface Memo {
  /** Undefined for a memo that is not a JSON object. */
  readonly fields: JsonObject | undefined;
  /** The tokens; undefined for a memo that does not hold every count. */
  readonly usage: Usage | undefined;
}

export function readMemo(memo: string): Memo {
  const fields = parseObject(memo);
  return { fields, usage: fields && usageOf(fields) };
}

const NO_FIELDS: JsonObject = Object.freeze({});

const memoOf = (memo: string | Memo): Memo => (typeof memo === "string" ? readMemo(memo) : memo);

/** The tokens in a memo; undefined for one that does not hold every count. */
export function usageOfMemo(memo: string | Memo): Usage | undefined {
  return memoOf(memo).usage;
}

/**
 * Computes a charge from the memo that `settle/memo.ts` wrote.
 * @returns undefined for a memo that does not hold every figure.
 */
export function recompute(memo: string | Memo): Recomputed | undefined {
  const { fields, usage } = memoOf(memo);
  if (!fields) return undefined;
  const prices = pricesOf(fields);
  const tools = toolPrices(fields.price_tools);
  const multiplier = nano(fields.multiplier);
  const hold = nano(fields.hold);
  if (!usage || !prices || !tools || multiplier === undefined || hold === undefined) return undefined;
  // The line has the prices of its own tier and step: there is nothing left to choose.
  const price = { ...prices, tools, tiers: new Map<string, UnitPrices>(), aboveTokens: [] };
  const { amount: cost } = charge(price, multiplier as bigint as Multiplier, usage);
  // Lines of earlier versions have no `final`: a count that came after its client had disconnected was capped at the
  // hold.
  const exact = fields.counted === "upstream" && (fields.ended === "complete" || fields.final === true);
  if (exact) return { cost, owed: cost };
  if (fields.calls_beyond_hold === undefined) return { cost, owed: leastNano(cost, hold) };
  const toolCalls = toolCounts(fields.calls_beyond_hold);
  if (!toolCalls) return undefined;
  const { amount: beyond } = charge(price, multiplier as bigint as Multiplier, { ...NO_USAGE, toolCalls });
  return { cost, owed: leastNano(cost, nanoUsd(hold + beyond)) };
}

/** An attempt at an upstream as in a memo (settle/memo.ts). */
export interface NotedAttempt {
  readonly upstream: string;
  readonly model: string;
  readonly outcome: string;
  readonly status: number | undefined;
  readonly input: number;
  readonly output: number;
  readonly counted: string;
  readonly cost: NanoUsd;
  readonly paidBy: string;
  readonly why: string;
  /** The cost again, from the line's tokens at the route's cost prices; undefined for a failed attempt. */
  readonly computed: NanoUsd | undefined;
}

/**
 * The attempts in a memo, with the cost of the answered one computed again.
 * @returns none for a memo without them; undefined if one of the attempts lacks a figure.
 */
export function attemptsOf(memo: string | Memo): readonly NotedAttempt[] | undefined {
  const read = memoOf(memo);
  const noted = read.fields?.attempts;
  if (noted === undefined) return [];
  if (!Array.isArray(noted)) return undefined;
  const attempts = noted.map((attempt) => attemptOf(objectOf(attempt), read));
  return attempts.every((attempt) => attempt !== undefined) ? attempts : undefined;
}

function attemptOf(attempt: JsonObject | undefined, line: Memo): NotedAttempt | undefined {
  const cost = nano(attempt?.cost);
  const [input, output] = [plausibleTotalInput(attempt?.input), plausibleCount(attempt?.output)];
  if (!attempt || cost === undefined || input === undefined || output === undefined) return undefined;
  const text = (member: string) => (typeof attempt[member] === "string" ? attempt[member] : "");
  const computed = attempt.outcome === "ok" ? costOf(attempt, line) : undefined;
  if (attempt.outcome === "ok" && computed === undefined) return undefined;
  const { status } = attempt;
  return {
    upstream: text("upstream"),
    model: text("model"),
    outcome: text("outcome"),
    status: typeof status === "number" ? status : undefined,
    input,
    output,
    counted: text("counted"),
    cost,
    paidBy: text("paid_by"),
    why: text("why"),
    computed,
  };
}

/** The line's tokens at the route's cost prices; these are the line's own prices if the attempt has none. */
function costOf({ cost_prices, cost_tools }: JsonObject, { fields, usage }: Memo): NanoUsd | undefined {
  if (!fields || !usage) return undefined;
  const prices = pricesOf(fields, objectOf(cost_prices));
  const tools = toolPrices(cost_tools ?? fields.price_tools);
  if (!prices || !tools) return undefined;
  return charge({ ...prices, tools, tiers: new Map(), aboveTokens: [] }, MULTIPLIER_ONE, usage).amount;
}

// Both are written member by member, because an audit runs this for each line.

function usageOf(fields: JsonObject): Usage | undefined {
  const input = plausibleCount(fields.input);
  const cachedInput = plausibleCount(fields.cached_input);
  const cacheWrite = plausibleCount(fields.cache_write);
  const cacheWrite1h = plausibleCount(fields.cache_write_1h);
  const output = plausibleCount(fields.output);
  const reasoning = plausibleCount(fields.reasoning);
  const toolCalls = toolCounts(fields.tool_calls);
  if (input === undefined || cachedInput === undefined || cacheWrite === undefined) return undefined;
  if (cacheWrite1h === undefined || output === undefined || reasoning === undefined || !toolCalls) return undefined;
  return { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, toolCalls };
}

/** @param own prices that override the line's. */
function pricesOf(fields: JsonObject, own: JsonObject = NO_FIELDS): UnitPrices | undefined {
  const input = nano(own.input ?? fields.price_input);
  const cachedInput = nano(own.cached_input ?? fields.price_cached_input);
  const cacheWrite = nano(own.cache_write ?? fields.price_cache_write);
  const cacheWrite1h = nano(own.cache_write_1h ?? fields.price_cache_write_1h);
  const output = nano(own.output ?? fields.price_output);
  if (input === undefined || cachedInput === undefined || cacheWrite === undefined) return undefined;
  if (cacheWrite1h === undefined || output === undefined) return undefined;
  return { input, cachedInput, cacheWrite, cacheWrite1h, output };
}

function toolCounts(value: unknown): Record<string, number> | undefined {
  const fields = objectOf(value);
  if (!fields) return undefined;
  const counts: Record<string, number> = {};
  for (const [tool, calls] of Object.entries(fields)) {
    const count = plausibleCount(calls);
    if (count === undefined) return undefined;
    counts[tool] = count;
  }
  return counts;
}

function toolPrices(value: unknown): Map<string, bigint> | undefined {
  const fields = objectOf(value);
  if (!fields) return undefined;
  const prices = new Map<string, bigint>();
  for (const [tool, text] of Object.entries(fields)) {
    const price = nano(text);
    if (price === undefined) return undefined;
    prices.set(tool, price);
  }
  return prices;
}

function nano(value: unknown): NanoUsd | undefined {
  return typeof value === "string" ? parseNano(value) : undefined;
}
