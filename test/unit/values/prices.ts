import { parseUsd } from "../../../src/values/money.ts";
import { MULTIPLIER_ONE, type Multiplier, type Price, type UnitPrices } from "../../../src/values/price.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";

/** Dollars per million tokens, in the order input, cached, write, write 1h, output. */
export function unitPrices(text: string): UnitPrices {
  const [input, cachedInput, cacheWrite, cacheWrite1h, output] = text
    .trim()
    .split(/\s+/)
    .map((usd) => {
      const amount = parseUsd(usd);
      if (amount === undefined) throw new Error(`not an amount: ${usd}`);
      return amount as bigint;
    }) as [bigint, bigint, bigint, bigint, bigint];
  return { input, cachedInput, cacheWrite, cacheWrite1h, output };
}

export function priceOf(text: string, more: Partial<Price> = {}): Price {
  return { ...unitPrices(text), tiers: new Map(), aboveTokens: [], tools: new Map(), ...more };
}

/** Token counts, in the order input, cached, write, write 1h, output. */
export function usageOf(text: string, toolCalls: Readonly<Record<string, number>> = {}): Usage {
  const [input, cachedInput, cacheWrite, cacheWrite1h, output] = text.trim().split(/\s+/).map(Number) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { ...NO_USAGE, input, cachedInput, cacheWrite, cacheWrite1h, output, toolCalls };
}

/** `1`, `0.8`, `1.000001`. */
export function multiplierOf(text: string): Multiplier {
  const amount = parseUsd(text);
  if (amount === undefined) throw new Error(`not a multiplier: ${text}`);
  return (((amount as bigint) * MULTIPLIER_ONE) / 1_000_000_000n) as Multiplier;
}
