/** Prices as written (US dollars per million tokens) to prices as charged (integers), without a floating point between. */
import { divideUp, parseUsd } from "../../values/money.ts";
import type { Price, TierPrices, UnitPrices } from "../../values/price.ts";
import type { ConfigPath } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { checkPriceNames } from "./price-names.ts";
import type { Loose, Reader } from "./reader.ts";

export type PriceFile = NonNullable<ConfigFile["models"][string]>["price"];
type TierFile = NonNullable<PriceFile["tiers"]>[string];
type UnitPricesFile = Pick<PriceFile, "input" | "cached_input" | "cache_write" | "cache_write_1h" | "output">;

/**
 * A price; members left out are derived from the input price: cached input costs the same, a cache write 1.25 times
 * (rounded up to a whole nano-dollar per million tokens), a cache write for an hour twice. Tiers and steps must name their
 * cached input where the price above them has a cheaper one.
 * @param cachedIsCheaper whether this price must name its cached input too.
 */
export function readPrice(
  reader: Reader,
  path: ConfigPath,
  price: Loose<PriceFile> | undefined,
  { cachedIsCheaper = false }: { readonly cachedIsCheaper?: boolean } = {},
): Price {
  const { tiers = {}, above_tokens = [], tools = {}, options = {} } = price ?? {};
  checkPriceNames(reader, path, price ?? {});
  for (const name of Object.keys(options)) {
    if (name in tools)
      reader.refuse([...path, "options", name], "must not be a tool's name too: both are charged by it");
  }
  const perCall = (key: "tools" | "options", prices: Readonly<Record<string, string | number | undefined>>) =>
    Object.entries(prices).map(([name, usd]) => [name, readUsd(reader, [...path, key, name], usd) ?? 0n] as const);
  const base = readUnitPrices(reader, path, price, cachedIsCheaper);
  const cheaper = hasCheaperCached(price, base, cachedIsCheaper);
  return {
    ...base,
    tiers: new Map(
      Object.entries(tiers).map(([name, tier]) => [name, readTier(reader, [...path, "tiers", name], tier, cheaper)]),
    ),
    aboveTokens: readSteps(reader, [...path, "above_tokens"], above_tokens, cheaper),
    // An extra that a request asks for is charged as one call.
    tools: new Map([...perCall("tools", tools), ...perCall("options", options)]),
    ...(Object.keys(options).length > 0 ? { extras: new Set(Object.keys(options)) } : {}),
  };
}

/** US dollars in nano-dollars; undefined when missing or refused. */
export function readUsd(reader: Reader, path: ConfigPath, usd: string | number | undefined): bigint | undefined {
  if (usd === undefined) return undefined;
  // `10.0` has the value of an integer, but its writer will write 10.1 next.
  const amount = reader.isFloat(path) ? undefined : parseUsd(String(usd));
  if (amount === undefined) {
    reader.refuse(path, 'must be US dollars as a quoted decimal such as "1.25", at most nine decimals and 9000000');
  }
  return amount;
}

/**
 * The prices of one place.
 * @param cachedIsCheaper whether cached input costs less than input one level up: left out here, it would cost as much as
 *   input, often ten times what was meant, so it must be named.
 */
function readUnitPrices(
  reader: Reader,
  path: ConfigPath,
  prices: Loose<UnitPricesFile> | undefined,
  cachedIsCheaper: boolean,
): UnitPrices {
  const usd = (key: keyof UnitPricesFile) => readUsd(reader, [...path, key], prices?.[key]);
  const input = usd("input") ?? 0n;
  const cachedInput = usd("cached_input");
  if (cachedInput === undefined && cachedIsCheaper && input > 0n) {
    reader.complain([...path, "cached_input"], CACHED_INPUT_MISSING, "key");
  }
  return {
    input,
    cachedInput: cachedInput ?? input,
    cacheWrite: usd("cache_write") ?? divideUp(input * 5n, 4n),
    cacheWrite1h: usd("cache_write_1h") ?? input * 2n,
    output: usd("output") ?? 0n,
  };
}

const CACHED_INPUT_MISSING =
  '"cached_input" is missing: it is below input in the price that this one stands in for, and left out here it would be ' +
  "as much as the input beside it; write what cached input costs here";

/** Whether cached input costs less than input in a place, or, where that place does not say, one level up. */
function hasCheaperCached(file: Loose<UnitPricesFile> | undefined, prices: UnitPrices, above: boolean): boolean {
  return file?.cached_input === undefined ? above : prices.cachedInput < prices.input;
}

function readTier(
  reader: Reader,
  path: ConfigPath,
  tier: Loose<TierFile> | undefined,
  cachedIsCheaper: boolean,
): TierPrices {
  const base = readUnitPrices(reader, path, tier, cachedIsCheaper);
  const cheaper = hasCheaperCached(tier, base, cachedIsCheaper);
  const aboveTokens = readSteps(reader, [...path, "above_tokens"], tier?.above_tokens ?? [], cheaper);
  return { ...base, ...(aboveTokens.length > 0 ? { aboveTokens } : {}) };
}

function readSteps(
  reader: Reader,
  path: ConfigPath,
  steps: NonNullable<Loose<PriceFile>["above_tokens"]>,
  cachedIsCheaper: boolean,
): Price["aboveTokens"] {
  const read: { tokens: number; prices: UnitPrices }[] = [];
  for (const [index, step] of steps.entries()) {
    const prices = readUnitPrices(reader, [...path, index], step, cachedIsCheaper);
    if (step?.tokens === undefined) continue;
    if (read.some((other) => other.tokens === step.tokens)) {
      reader.refuse([...path, index, "tokens"], "must differ from the other steps: two prices would apply at once");
    }
    read.push({ tokens: step.tokens, prices });
  }
  return read.sort((a, b) => a.tokens - b.tokens);
}
