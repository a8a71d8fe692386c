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

/** Prices from a length of the input on. */
interface PriceStep {
  /** All input of a request above which it applies. */
  readonly tokens: number;
  readonly prices: UnitPrices;
}

/** The prices of a service tier, with steps of its own; without steps they hold for any size of input. */
export interface TierPrices extends UnitPrices {
  /** Ascending by `tokens`. */
  readonly aboveTokens?: readonly PriceStep[];
}

/** A model's price: the standard prices and what differs from them. */
export interface Price extends UnitPrices {
  /** Prices that replace the standard ones, and their steps, when a request names this service tier (or `speed`). */
  readonly tiers: ReadonlyMap<string, TierPrices>;
  /** Prices that replace the standard ones when all input exceeds `tokens`; ascending by `tokens`. */
  readonly aboveTokens: readonly PriceStep[];
  /** Nano-dollars per call of a hosted tool, by tool name, and per request that asks for one of `extras`. */
  readonly tools: ReadonlyMap<string, bigint>;
  /** Members of a body that cost once per request, regardless of the server's counts (`price.options`). */
  readonly extras?: ReadonlySet<string>;
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
  const base = tierOf(price, tier);
  let prices: UnitPrices = base;
  for (const step of base.aboveTokens ?? []) if (inputTokens > step.tokens) prices = step.prices;
  return prices;
}

/** The prices of a tier, or the standard ones where it has none of its own. */
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
 * What a request costs: integer arithmetic, one division at the end, half up. Never more than one movement can carry:
 * what an upstream counts must not make a charge that no store takes.
 * @returns the price snapshot used beside the amount, for the ledger line.
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
 * The most that a request can cost: all input at the dearest input price, all output at the output price, and every
 * price step that the input could reach, rounded up (ARCHITECTURE.md promise 1).
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
  const base = tierOf(price, tier);
  // The estimate bounds the input from above, so any step at or below it may turn out to apply; steps may go either way.
  const steps = (base.aboveTokens ?? []).filter((step) => inputTokens > step.tokens);
  const reachable: UnitPrices[] = [base, ...steps.map((step) => step.prices)];
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
