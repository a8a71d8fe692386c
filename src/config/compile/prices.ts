/**
 * Converts prices as written (US dollars per million tokens) to prices as charged (integers), without floating point.
 */

import { tierNameFault } from "../../values/members/tier.ts";
import { OPTION_MEMBERS } from "../../values/members.ts";
import { divideUp, parseUsd } from "../../values/money.ts";
import type { Price, TierPrices, UnitPrices } from "../../values/price.ts";
import { toolNameFault } from "../../values/tokens/tool-calls.ts";
import { type ConfigPath, shownKey, suggestion } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import type { Loose, Reader } from "./reader.ts";

type PriceFile = NonNullable<ConfigFile["models"][string]>["price"];
type TierFile = NonNullable<PriceFile["tiers"]>[string];
type UnitPricesFile = Pick<PriceFile, "input" | "cached_input" | "cache_write" | "cache_write_1h" | "output">;

/**
 * Reads a price. Missing members are derived from the input price: cached input costs the same, a cache write 1.25
 * times as much (rounded up to a whole nano-dollar per million tokens), a cache write for an hour twice as much. Tiers
 * and steps must name their cached input if it is cheaper than input in the price above them.
 * @param cachedIsCheaper whether this price must also name its cached input.
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
      reader.refuse([...path, "options", name], "must not also be the name of a tool: both are charged by name");
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
    // An option that a request asks for is charged as one call.
    tools: new Map([...perCall("tools", tools), ...perCall("options", options)]),
    ...(Object.keys(options).length > 0 ? { extras: new Set(Object.keys(options)) } : {}),
  };
}

/** US dollars in nano-dollars; undefined if missing or refused. */
export function readUsd(reader: Reader, path: ConfigPath, usd: string | number | undefined): bigint | undefined {
  if (usd === undefined) return undefined;
  // `10.0` is exact, but its author will write 10.1 next.
  const amount = reader.isFloat(path) ? undefined : parseUsd(String(usd));
  if (amount === undefined) {
    reader.refuse(
      path,
      'must be US dollars as a quoted decimal such as "1.25": from 0 to 9000000, with at most nine decimals',
    );
  }
  return amount;
}

/**
 * Reads the five unit prices of a price, tier, step or cost.
 * @param cachedIsCheaper whether cached input costs less than input one level up. Then it must be named here too: left
 * out, it would cost as much as input, often ten times what was intended.
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
  '"cached_input" is missing: it is below input in the price that this one replaces or is compared with, but left out here ' +
  "it would cost as much as input; write what cached input costs here";

/** Whether cached input costs less than input here, or one level up if it is not named here. */
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

/* Names in a price by which no request is ever charged. Such a price is a mistake, often a misspelling. */

/** The parts of a price whose names are checked, as written. */
interface NamedPrices {
  readonly options?: object | undefined;
  readonly tools?: object | undefined;
  readonly tiers?: object | undefined;
}

/** Reports each tool, option and tier of a price or a cost by which nothing can be charged. */
function checkPriceNames(reader: Reader, path: ConfigPath, price: NamedPrices): void {
  const refuse = (key: string, name: string, why: string, near: string) =>
    reader.complain([...path, key, name], `"${shownKey(name)}" is refused: it ${why}${near}`, "key");
  for (const name of Object.keys(price.options ?? {})) {
    if (OPTION_MEMBERS.has(name)) continue;
    const why =
      "must be a member that asks for an extra (one of the options in docs/members.md): no other is ever charged";
    refuse("options", name, why, suggestion(name, OPTION_MEMBERS));
  }
  for (const name of Object.keys(price.tools ?? {})) {
    const fault = toolNameFault(name, OPTION_MEMBERS);
    if (fault) refuse("tools", name, fault.why, meantBy(fault));
  }
  for (const name of Object.keys(price.tiers ?? {})) {
    const fault = tierNameFault(name);
    if (fault) refuse("tiers", name, fault.why, meantBy(fault));
  }
}

const meantBy = ({ meant }: { readonly meant?: string }) => (meant === undefined ? "" : ` (did you mean "${meant}"?)`);

/*
 * Compares a route's cost with the model's price. An entry that only the price has would silently be counted as free or
 * at another cost, and the margin would be wrong.
 */

/** A model's price: its path, as written, and as read. */
interface PriceOf {
  readonly path: ConfigPath;
  readonly file: Loose<PriceFile> | undefined;
  readonly read: Price;
}

/** Reads a route's cost, and reports each tool, option, tier and step that only the price has. */
export function readCost(reader: Reader, path: ConfigPath, cost: Loose<PriceFile>, price: PriceOf): Price {
  const demand = (isThere: boolean, key: ConfigPath, why: string) => {
    if (isThere || key.some((_, at) => reader.isRefused([...path, ...key.slice(0, at)]))) return;
    // A name that is refused in the price is not demanded here.
    if (reader.isRefused([...price.path, ...key])) return;
    reader.complain([...path, ...key], `"${shownKey(String(key.at(-1)))}" is missing: the model's price ${why}`, "key");
  };
  const { tools = {}, options = {}, tiers = {} } = price.file ?? {};
  // Tools and options are both charged by name, so the cost may have the name under either.
  const perCall = new Set([...Object.keys(cost.tools ?? {}), ...Object.keys(cost.options ?? {})]);
  for (const name of Object.keys(tools)) demand(perCall.has(name), ["tools", name], UNPRICED);
  for (const name of Object.keys(options)) demand(perCall.has(name), ["options", name], UNPRICED);
  demand(coversSteps(cost, price.file), ["above_tokens"], STEPLESS);
  const ownTiers = new Map(Object.entries(cost.tiers ?? {}));
  for (const [name, tier] of Object.entries(tiers)) {
    const own = ownTiers.get(name);
    demand(own !== undefined, ["tiers", name], TIERLESS);
    demand(own === undefined || coversSteps(own, tier), ["tiers", name, "above_tokens"], STEPLESS);
  }
  return readPrice(reader, path, cost, { cachedIsCheaper: price.read.cachedInput < price.read.input });
}

const UNPRICED = `has it, but left out here it would cost nothing; write what the upstream charges, "0" if nothing`;
const TIERLESS =
  "has this tier, but left out here its requests would cost the same as standard requests; write its prices, " +
  `"0" if the upstream charges nothing`;
const STEPLESS =
  "has other prices for long input, but left out here long input would cost no more than short input; write the steps, " +
  "[] if the upstream has none";

/** Whether a cost has `above_tokens` if its price has steps. An empty list means that the cost has no steps. */
function coversSteps(cost: PriceSteps, price: PriceSteps | undefined): boolean {
  return cost.above_tokens !== undefined || (price?.above_tokens ?? []).length === 0;
}

type PriceSteps = Loose<Pick<PriceFile, "above_tokens">>;
