import { divideHalfUp, divideUp, leastNano, NANO_USD_MAX, type NanoUsd, nanoUsd } from "./money.ts";
import { totalInput, type Usage } from "./tokens.ts";

/** Prices of one model, each in nano-dollars per million tokens. */
export interface UnitPrices {
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
  readonly cacheWrite1h: bigint;
  readonly output: bigint;
}

/** A model's price: the standard prices and what differs from them. */
export interface Price extends UnitPrices {
  /** Prices that replace the standard ones when a request names this service tier (or `speed`). */
  readonly tiers: ReadonlyMap<string, UnitPrices>;
  /** Prices that replace the standard ones when all input exceeds `tokens`; ascending by `tokens`. */
  readonly aboveTokens: readonly { readonly tokens: number; readonly prices: UnitPrices }[];
  /** Nano-dollars per call of a hosted tool, by tool name. */
  readonly tools: ReadonlyMap<string, bigint>;
}

/** A group's multiplier in millionths: 1_000_000n is 1.0. */
export type Multiplier = bigint & { readonly __unit: "millionths" };
export const MULTIPLIER_ONE = 1_000_000n as Multiplier;

const TOKENS_PER_PRICE = 1_000_000n;
const MILLIONTHS = 1_000_000n;
const DIVISOR = TOKENS_PER_PRICE * MILLIONTHS;

/** What a ledger line needs so that anybody can recompute the amount. */
export interface PriceSnapshot {
  readonly prices: UnitPrices;
  readonly tools: ReadonlyMap<string, bigint>;
  readonly multiplier: Multiplier;
}

/**
 * The unit prices that apply to a request of `inputTokens` on `tier`.
 * @param tier a service tier named by the client that has a price, or undefined for the standard prices.
 */
export function unitPricesFor(price: Price, inputTokens: number, tier?: string): UnitPrices {
  const tiered = tier === undefined ? undefined : price.tiers.get(tier);
  if (tiered) return tiered;
  let prices: UnitPrices = price;
  for (const step of price.aboveTokens) if (inputTokens > step.tokens) prices = step.prices;
  return prices;
}

/** The sum of tokens times price, in nano-dollars x 10^6 (tokens per price unit), before the multiplier. */
function weigh(prices: UnitPrices, tools: ReadonlyMap<string, bigint>, usage: Usage): bigint {
  let sum =
    BigInt(usage.input) * prices.input +
    BigInt(usage.cachedInput) * prices.cachedInput +
    BigInt(usage.cacheWrite) * prices.cacheWrite +
    BigInt(usage.cacheWrite1h) * prices.cacheWrite1h +
    BigInt(usage.output) * prices.output;
  for (const [tool, calls] of Object.entries(usage.toolCalls)) {
    sum += BigInt(calls) * (tools.get(tool) ?? 0n) * TOKENS_PER_PRICE;
  }
  return sum;
}

/**
 * What a request costs: integer arithmetic, one division at the end, half up; never more than one movement may carry,
 * whatever an upstream counts.
 * @returns the price snapshot used beside the amount, for the ledger line.
 */
export function charge(
  price: Price,
  multiplier: Multiplier,
  usage: Usage,
  tier?: string,
): { amount: NanoUsd; snapshot: PriceSnapshot } {
  const prices = unitPricesFor(price, totalInput(usage), tier);
  const whole = nanoUsd(divideHalfUp(weigh(prices, price.tools, usage) * multiplier, DIVISOR));
  const amount = leastNano(whole, NANO_USD_MAX);
  return { amount, snapshot: { prices, tools: price.tools, multiplier } };
}

/**
 * The most that a request can cost: all input at the dearest input price, all output at the output price, and every
 * price step that the input could reach, rounded up (DESIGN.md promise 1).
 */
export function holdFor(
  price: Price,
  multiplier: Multiplier,
  tokens: { input: number; output: number },
  tier?: string,
): NanoUsd {
  const { input, output } = dearest(price, tokens.input, tier);
  const sum = BigInt(tokens.input) * input + BigInt(tokens.output) * output;
  return nanoUsd(divideUp(sum * multiplier, DIVISOR));
}

/**
 * How many output tokens `funds` buy after `inputTokens` at the dearest input price have been set aside.
 * @returns a whole number, rounded down; 0 when not even the input is covered.
 */
export function affordableOutput(
  price: Price,
  multiplier: Multiplier,
  inputTokens: number,
  funds: NanoUsd,
  tier?: string,
): number {
  const { input, output } = dearest(price, inputTokens, tier);
  const rest = funds * DIVISOR - BigInt(inputTokens) * input * multiplier;
  if (rest <= 0n) return 0;
  const perToken = output * multiplier;
  if (perToken === 0n) return Number.MAX_SAFE_INTEGER;
  const count = rest / perToken;
  return count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count);
}

function dearest(price: Price, inputTokens: number, tier?: string): { input: bigint; output: bigint } {
  const tiered = tier === undefined ? undefined : price.tiers.get(tier);
  // The estimate bounds the input from above, so any step at or below it may turn out to apply; steps may go either way.
  const reachable: UnitPrices[] = tiered
    ? [tiered]
    : [price, ...price.aboveTokens.filter((step) => inputTokens > step.tokens).map((step) => step.prices)];
  let input = 0n;
  let output = 0n;
  for (const p of reachable) {
    for (const candidate of [p.input, p.cachedInput, p.cacheWrite, p.cacheWrite1h]) {
      if (candidate > input) input = candidate;
    }
    if (p.output > output) output = p.output;
  }
  return { input, output };
}
