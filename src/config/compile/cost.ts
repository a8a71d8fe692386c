/**
 * What a route costs the operator, compared with the model's price: what a cost leaves out would be counted as nothing, or
 * at another cost, without a word, and the margin would be wrong.
 */
import type { Price } from "../../values/price.ts";
import { type ConfigPath, shownKey } from "../problems.ts";
import { type PriceFile, readPrice } from "./prices.ts";
import type { Loose, Reader } from "./reader.ts";

/** A model's price, where it is, as written and as read. */
interface PriceOf {
  readonly path: ConfigPath;
  readonly file: Loose<PriceFile> | undefined;
  readonly read: Price;
}

/** Reads a route's cost, and complains about each tool, option, tier and step that only the price has. */
export function readCost(reader: Reader, path: ConfigPath, cost: Loose<PriceFile>, price: PriceOf): Price {
  const demand = (isThere: boolean, key: ConfigPath, why: string) => {
    if (isThere || key.some((_, at) => reader.isRefused([...path, ...key.slice(0, at)]))) return;
    // A name that must go from the price is not to be written here too.
    if (reader.isRefused([...price.path, ...key])) return;
    reader.complain([...path, ...key], `"${shownKey(String(key.at(-1)))}" is missing: the model's price ${why}`, "key");
  };
  const { tools = {}, options = {}, tiers = {} } = price.file ?? {};
  // Both are charged by name, whichever of the two the cost has it under.
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

const UNPRICED = `has it, and left out here it would cost nothing; write what the upstream charges, "0" if nothing`;
const TIERLESS =
  "has this tier, and left out here it would cost what standard requests do; write its prices, " +
  `"0" where the upstream charges nothing`;
const STEPLESS =
  "has other prices for long input, and left out here long input would cost no more than short; write the steps, " +
  "[] where the upstream has none";

/** Whether a cost says something of long input where its price does. An empty list says that there are no steps. */
function coversSteps(cost: PriceSteps, price: PriceSteps | undefined): boolean {
  return cost.above_tokens !== undefined || (price?.above_tokens ?? []).length === 0;
}

type PriceSteps = Loose<Pick<PriceFile, "above_tokens">>;
