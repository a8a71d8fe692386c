import { divideHalfUp, divideUp, leastNano, NANO_USD_MAX, type NanoUsd, nanoUsd } from "./money.ts";
import { stepInput, type Usage } from "./tokens/usage.ts";

/** Prices of one model, each in nano-dollars per million tokens. */
export interface UnitPrices {
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
  readonly cacheWrite1h: bigint;
  readonly output: bigint;
}

/** Prices above a certain length of the input. */
interface PriceStep {
  /** Applies if all input of a request exceeds this. */
  readonly tokens: number;
  readonly prices: UnitPrices;
}

/** The prices of a service tier, with its own steps; without steps, they apply to any size of input. */
export interface TierPrices extends UnitPrices {
  /** Ascending by `tokens`. */
  readonly aboveTokens?: readonly PriceStep[];
}

/** A model's price: the standard prices and the exceptions. */
export interface Price extends UnitPrices {
  /** Prices that replace the standard ones, and their steps, if a request names this service tier (or `speed`). */
  readonly tiers: ReadonlyMap<string, TierPrices>;
  /** Prices that replace the standard ones if all input exceeds `tokens`; ascending by `tokens`. */
  readonly aboveTokens: readonly PriceStep[];
  /** Nano-dollars per call of a hosted tool, by tool name, and per request that asks for one of `extras`. */
  readonly tools: ReadonlyMap<string, bigint>;
  /** Members of a body that cost once per request, regardless of the server's counts (`price.options`). */
  readonly extras?: ReadonlySet<string>;
}

const NO_STEPS: readonly PriceStep[] = [];

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
  const base = tierOf(price, tier);
  let prices: UnitPrices = base;
  for (const step of base.aboveTokens ?? NO_STEPS) if (inputTokens > step.tokens) prices = step.prices;
  return prices;
}

/** The prices of a tier, or the standard ones if it has none. */
function tierOf(price: Price, tier: string | undefined): TierPrices {
  return (tier === undefined ? undefined : price.tiers.get(tier)) ?? price;
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
 * The cost of a request: integer arithmetic, one division at the end, rounded half up. Capped at the largest movement,
 * so that an upstream's count cannot cause a charge that the store rejects.
 * @returns also the price snapshot that was used, for the ledger line.
 */
export function charge(
  price: Price,
  multiplier: Multiplier,
  usage: Usage,
  tier?: string,
): { amount: NanoUsd; snapshot: PriceSnapshot } {
  const prices = unitPricesFor(price, stepInput(usage), tier);
  const amount = nanoUsd(divideHalfUp(weigh(prices, price.tools, usage) * multiplier, DIVISOR));
  return { amount: leastNano(amount, NANO_USD_MAX), snapshot: { prices, tools: price.tools, multiplier } };
}

/**
 * The most that a request can cost, by its output: all input at the highest input price, all output at the output
 * price, and every price step that the input could reach (ARCHITECTURE.md promise 1). Exact; it is rounded only once.
 */
export interface Ceiling {
  /** Cost of the input, in nano-dollars x 10^12 (tokens per price unit, times millionths). */
  readonly input: bigint;
  /** Cost of each output token, in the same unit. */
  readonly perOutput: bigint;
}

/** @param tier as for `unitPricesFor`. */
export function ceilingOf(price: Price, multiplier: Multiplier, inputTokens: number, tier?: string): Ceiling {
  const base = tierOf(price, tier);
  let { output } = base;
  let input = highestInputPrice(base);
  // The estimate bounds the input from above, so any step at or below it may apply; a step may raise or lower the
  // prices.
  for (const { tokens, prices } of base.aboveTokens ?? NO_STEPS) {
    if (inputTokens <= tokens) continue;
    const highest = highestInputPrice(prices);
    if (highest > input) input = highest;
    if (prices.output > output) output = prices.output;
  }
  return { input: BigInt(inputTokens) * input * multiplier, perOutput: output * multiplier };
}

function highestInputPrice({ input, cachedInput, cacheWrite, cacheWrite1h }: UnitPrices): bigint {
  let most = input;
  if (cachedInput > most) most = cachedInput;
  if (cacheWrite > most) most = cacheWrite;
  if (cacheWrite1h > most) most = cacheWrite1h;
  return most;
}

/** The hold for this many output tokens, rounded up. */
export function holdFor({ input, perOutput }: Ceiling, outputTokens: number): NanoUsd {
  return nanoUsd(divideUp(input + BigInt(outputTokens) * perOutput, DIVISOR));
}

/**
 * How many output tokens `funds` pay for, after the input.
 * @returns a whole number, rounded down; 0 if not even the input is covered. Output that costs nothing needs no funds.
 */
export function affordableOutput({ input, perOutput }: Ceiling, funds: NanoUsd): number {
  const rest = funds * DIVISOR - input;
  if (rest < 0n) return 0;
  if (perOutput === 0n) return Number.MAX_SAFE_INTEGER;
  const count = rest / perOutput;
  return count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count);
}
