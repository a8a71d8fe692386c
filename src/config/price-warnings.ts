/** Prices that are most likely not meant: written per token, or below what the upstream charges. */
import { type Catalog, type Group, groupServes, type Model, type Route } from "../values/catalog.ts";
import { formatUsd } from "../values/money.ts";
import { MULTIPLIER_ONE, type UnitPrices } from "../values/price.ts";
import { formatMultiplier } from "./compile/units.ts";

/** The members of a price that are compared, as the file calls them. */
const PARTS = { input: "input", cachedInput: "cached_input", output: "output" } as const;

/** One sentence for each price that is in question, in the order of the file. */
export function* ofPrices({ models, groups }: Catalog): Generator<string> {
  for (const model of models.values()) {
    const place = `models.${model.name}`;
    const served = [...groups.values()].filter((group) => groupServes(group, model.name));
    yield* ofUnits(`${place}.price`, model.price);
    for (const [index, route] of model.routes.entries()) {
      // A cost that is left out is the price itself.
      if (route.cost === model.price) continue;
      yield* ofUnits(`${place}.routes[${index}].cost`, route.cost);
      yield* ofLoss(`${place}.routes[${index}].cost`, model, route, served);
    }
  }
}

/** Nano-dollars per million tokens. The cheapest of models cost ten times as much, and the dearest a thousandth per token. */
const PER_TOKEN_BELOW = 1_000_000n;
const TOKENS_PER_PRICE = 1_000_000n;

/** Only of what is always written: what is derived from it, or a discount on it, may be very small. */
function* ofUnits(place: string, prices: UnitPrices): Generator<string> {
  for (const part of ["input", "output"] as const) {
    const price = prices[part];
    if (price === 0n || price >= PER_TOKEN_BELOW) continue;
    yield `${place}.${part} is ${formatUsd(price)} US dollars per million tokens, which looks like a price per token: that would be "${formatUsd(price * TOKENS_PER_PRICE)}"`;
  }
}

/**
 * What each request of such a route loses. A model that is given away is meant to; one that only cards pay for earns by what the
 * cards are sold for.
 */
function* ofLoss(place: string, { price }: Model, { cost }: Route, served: readonly Group[]): Generator<string> {
  const paid = served.filter(({ kind, fallback }) => kind === "pay_per_use" || fallback === "money");
  if (paid.length === 0 || (price.input === 0n && price.output === 0n)) return;
  const most = paid.reduce((highest, { multiplier }) => (multiplier > highest ? multiplier : highest), 0n);
  const above = (Object.keys(PARTS) as (keyof typeof PARTS)[]).filter(
    (part) => cost[part] * MULTIPLIER_ONE > price[part] * most,
  );
  if (above.length === 0) return;
  const said = above.map((part) => `${PARTS[part]} ${formatUsd(cost[part])} above ${formatUsd(price[part])}`);
  const times =
    most === MULTIPLIER_ONE ? "" : ` times ${formatMultiplier(most as Group["multiplier"])}, its dearest group`;
  yield `${place} is above the model's price${times}: ${said.join(", ")}; such requests cost more than they earn`;
}
