/** The memo of a ledger line: everything that is needed to compute its amount again. */

import type { UpstreamCost } from "../store/settlement.ts";
import { addTokens, requestsOf, tokenSumsOf } from "../store/sums/token-sums.ts";
import { leastNano, NANO_USD_MAX, type NanoUsd, ZERO } from "../values/money.ts";
import type { PriceSnapshot, UnitPrices } from "../values/price.ts";
import type { UnpaidCalls } from "../values/tokens/tool-calls.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { Metered } from "./meter.ts";
import type { ModelAtUpstream } from "./observed.ts";

export interface MemoFacts {
  readonly metered: Metered;
  readonly snapshot: PriceSnapshot;
  /** The tier whose prices are in `snapshot`. */
  readonly tier: string | undefined;
  /** `complete`, or why the answer was cut or nobody got it. */
  readonly ended: string;
  readonly hold: bigint;
  /** Whether that was the dearest, for an account whose charges were above its holds again and again. */
  readonly heldDear?: boolean | undefined;
  readonly catalog: string;
  readonly upstream: string | undefined;
  /** What the upstream's count says that cannot be. */
  readonly surprises?: readonly string[] | undefined;
  /** The model's name there. */
  readonly upstreamModel: string | undefined;
  /** What the line's tokens and calls cost the operator, at the route's cost prices. */
  readonly cost: NanoUsd;
  /** The model that answered by the upstream's own word, where that is another than the one asked for and charged. */
  readonly answeredBy?: string | undefined;
  /** Calls of hosted tools that the server counts and nobody is charged for. */
  readonly unpaidCalls?: readonly UnpaidCalls[] | undefined;
  /** Why the client pays although it was given nothing. */
  readonly paid?: string | undefined;
  /** Every try of the request, on one of its lines. */
  readonly attempts?: readonly object[] | undefined;
}

/** A flat JSON object but for tools and attempts. Numbers of tokens, prices as integer strings. */
export function memoOf(facts: MemoFacts): string {
  const { metered, snapshot, attempts, surprises, unpaidCalls } = facts;
  const { usage, counted } = metered;
  return JSON.stringify({
    input: usage.input,
    cached_input: usage.cachedInput,
    cache_write: usage.cacheWrite,
    cache_write_1h: usage.cacheWrite1h,
    output: usage.output,
    reasoning: usage.reasoning,
    tool_calls: usage.toolCalls,
    unpaid_tool_calls: unpaidCalls?.length ? unpaidCalls : undefined,
    ...pricesOf(snapshot.prices),
    price_tools: toolPrices(snapshot),
    multiplier: String(snapshot.multiplier),
    tier: facts.tier,
    counted,
    // The upstream's last word is owed as it is, although the client had left before it.
    final: counted === "upstream" && facts.ended !== COMPLETE ? true : undefined,
    surprise: surprises?.length ? surprises.join(",") : undefined,
    ended: facts.ended,
    paid: facts.paid,
    hold: String(facts.hold),
    held: facts.heldDear ? "dearest" : undefined,
    catalog: facts.catalog,
    upstream: facts.upstream,
    upstream_model: facts.upstreamModel,
    cost: String(facts.cost),
    answered_by: facts.answeredBy,
    attempts: attempts?.length ? attempts : undefined,
  });
}

/** Members of each price table that is in force, so that they are written down once. */
const WRITTEN = new WeakMap<UnitPrices, Readonly<Record<string, string>>>();

function pricesOf(prices: UnitPrices): Readonly<Record<string, string>> {
  const known = WRITTEN.get(prices);
  if (known) return known;
  const named = Object.entries(unitPrices(prices)).map(([name, price]) => [`price_${name}`, price] as const);
  const written = Object.fromEntries(named);
  WRITTEN.set(prices, written);
  return written;
}

export const COMPLETE = "complete";
/** The end of a stream for which neither hold nor funds reached further. */
export const BRAKE = "brake";

/** Nano-dollars per million tokens, as integer strings. */
export function unitPrices(prices: UnitPrices): Record<string, string> {
  return {
    input: String(prices.input),
    cached_input: String(prices.cachedInput),
    cache_write: String(prices.cacheWrite),
    cache_write_1h: String(prices.cacheWrite1h),
    output: String(prices.output),
  };
}

/** Nano-dollars per call, as integer strings. */
export function toolPrices({ tools }: PriceSnapshot): Record<string, string> {
  return Object.fromEntries([...tools].map(([tool, price]) => [tool, String(price)]));
}

/* What a request costs the operator, by upstream and model: what a vendor's invoice is compared with. */

/** The cost of the answer that the client is charged for; the client may pay less. */
export function chargedCost(
  { upstream, upstreamModel: model }: ModelAtUpstream,
  usage: Usage,
  cost: NanoUsd,
): UpstreamCost {
  return { upstream, model, requests: 1, tokens: tokenSumsOf(usage), cost, absorbed: ZERO, charged: true };
}

/** What no client pays for: an answer that nobody got, a try that failed, calls of tools that were not asked for. */
export function absorbedCost(
  { upstream, upstreamModel: model }: ModelAtUpstream,
  usage: Usage,
  cost: NanoUsd,
): UpstreamCost {
  const tokens = tokenSumsOf(usage);
  return { upstream, model, requests: requestsOf(tokens), tokens, cost, absorbed: cost, charged: false };
}

/**
 * Adds up what is of the same upstream and model, as a store takes each of them once. What costs nothing and is not charged
 * has no line, and is left out.
 */
export function eachOnce(costs: readonly UpstreamCost[]): readonly UpstreamCost[] {
  const sums = new Map<string, UpstreamCost>();
  for (const one of costs) {
    if (one.cost === 0n && !one.charged) continue;
    const name = `${one.upstream}|${one.model}`;
    const before = sums.get(name);
    sums.set(name, before ? added(before, one) : one);
  }
  return [...sums.values()];
}

function added(a: UpstreamCost, b: UpstreamCost): UpstreamCost {
  return {
    ...a,
    requests: a.requests + b.requests,
    tokens: addTokens(a.tokens, b.tokens),
    cost: sum(a.cost, b.cost),
    absorbed: sum(a.absorbed, b.absorbed),
    charged: a.charged || b.charged,
  };
}

function sum(a: NanoUsd, b: NanoUsd): NanoUsd {
  return leastNano((a + b) as NanoUsd, NANO_USD_MAX);
}
