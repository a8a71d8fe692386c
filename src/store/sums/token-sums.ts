/** Tokens and requests in the form in which sums are kept, per day, group, model and key. */
import type { Usage } from "../../values/tokens/usage.ts";

/**
 * Tokens by kind. `cacheWrite` has cache writes of both lifetimes, and `reasoning` is a part of `output`. Otherwise the
 * kinds do not overlap (values/tokens/usage.ts).
 */
export interface TokenSums {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

/** The tokens of one request, by kind. */
export function tokenSumsOf({ input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning }: Usage): TokenSums {
  return { input, cachedInput, cacheWrite: cacheWrite + cacheWrite1h, output, reasoning };
}

export function addTokens(a: TokenSums, b: TokenSums): TokenSums {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  };
}

/** Whether unpaid usage was a request of its own. Tool calls alone came with another request. */
export function requestsOf({ input, cachedInput, cacheWrite, output }: TokenSums): 0 | 1 {
  return input + cachedInput + cacheWrite + output > 0 ? 1 : 0;
}

/** Charged requests, including those paid by a card without a quota, and their tokens. */
export interface UsageCounts extends TokenSums {
  readonly requests: number;
}

/** Every count, in display order. */
export const COUNT_KINDS = ["requests", "input", "cachedInput", "cacheWrite", "output", "reasoning"] as const;

export const NO_COUNTS: UsageCounts = Object.freeze({
  requests: 0,
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: 0,
});

/** What one charged request adds. A request journaled by an earlier version has no tokens. */
export function countsOfRequest(tokens: TokenSums | undefined): UsageCounts {
  return tokens === undefined ? { ...NO_COUNTS, requests: 1 } : countsOf(tokens, 1);
}

/**
 * Counts from requests and their tokens. Written out member by member, because V8 takes 1 us to find the members
 * itself.
 */
export function countsOf(
  { input, cachedInput, cacheWrite, output, reasoning }: TokenSums,
  requests: number,
): UsageCounts {
  return { requests, input, cachedInput, cacheWrite, output, reasoning };
}

export function addCounts(a: UsageCounts, b: UsageCounts): UsageCounts {
  return {
    requests: a.requests + b.requests,
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  };
}

/** Builds counts one kind at a time. */
export function countsFrom(count: (kind: (typeof COUNT_KINDS)[number]) => number): UsageCounts {
  return {
    requests: count("requests"),
    input: count("input"),
    cachedInput: count("cachedInput"),
    cacheWrite: count("cacheWrite"),
    output: count("output"),
    reasoning: count("reasoning"),
  };
}
