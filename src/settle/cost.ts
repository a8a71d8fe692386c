/** What a request costs the operator, by upstream and model: what a vendor's invoice is compared with. */
import type { UpstreamCost } from "../store/settlement.ts";
import { addTokens, requestsOf, tokenSumsOf } from "../store/sums/token-sums.ts";
import { leastNano, NANO_USD_MAX, type NanoUsd, ZERO } from "../values/money.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { ModelAtUpstream } from "./observed.ts";

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
