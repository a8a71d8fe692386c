/** Warnings about prices that are probably mistakes: written per token, or below what the upstream charges. */
import { type Catalog, type Group, groupServes, type Model, type Route } from "../values/catalog.ts";
import { formatUsd } from "../values/money.ts";
import { MULTIPLIER_ONE, type UnitPrices } from "../values/price.ts";
import { formatMultiplier } from "./compile/units.ts";

/** The members of a price that are compared, as the file calls them. */
const PARTS = { input: "input", cachedInput: "cached_input", output: "output" } as const;

/** One sentence per doubtful price, in the order of the file. */
export function* ofPrices({ models, groups }: Catalog): Generator<string> {
  for (const model of models.values()) {
    const place = `models.${model.name}`;
    const served = [...groups.values()].filter((group) => groupServes(group, model.name));
    yield* ofUnits(`${place}.price`, model.price);
    for (const [index, route] of model.routes.entries()) {
      // A missing cost is the price itself.
      if (route.cost === model.price) continue;
      yield* ofUnits(`${place}.routes[${index}].cost`, route.cost);
      yield* ofLoss(`${place}.routes[${index}].cost`, model, route, served);
    }
  }
}

/**
 * Nano-dollars per million tokens. The cheapest models cost ten times as much; the price per token of the most
 * expensive ones is a thousandth of this.
 */
const PER_TOKEN_BELOW = 1_000_000n;
const TOKENS_PER_PRICE = 1_000_000n;

/** Checks only input and output: derived prices and discounts may be very small. */
function* ofUnits(place: string, prices: UnitPrices): Generator<string> {
  for (const part of ["input", "output"] as const) {
    const price = prices[part];
    if (price === 0n || price >= PER_TOKEN_BELOW) continue;
    yield `${place}.${part} is ${formatUsd(price)} US dollars per million tokens, which looks like a price per token: that would be "${formatUsd(price * TOKENS_PER_PRICE)}"`;
  }
}

/**
 * Warns about a route on which every request makes a loss. Free models are meant to; models that only cards pay for are
 * not checked, because the income is the price of the cards.
 */
function* ofLoss(place: string, { price }: Model, { cost }: Route, served: readonly Group[]): Generator<string> {
  const paid = served.filter(({ kind, fallback }) => kind === "pay_per_use" || fallback === "money");
  if (paid.length === 0 || (price.input === 0n && price.output === 0n)) return;
  const most = paid.reduce((highest, { multiplier }) => (multiplier > highest ? multiplier : highest), 0n);
  const above = (Object.keys(PARTS) as (keyof typeof PARTS)[]).filter(
    (part) => cost[part] * MULTIPLIER_ONE > price[part] * most,
  );
  if (above.length === 0) return;
  const parts = above.map((part) => `${PARTS[part]} ${formatUsd(cost[part])} above ${formatUsd(price[part])}`);
  const times =
    most === MULTIPLIER_ONE
      ? ""
      : ` times ${formatMultiplier(most as Group["multiplier"])}, the multiplier of its most expensive group`;
  yield `${place} is above the model's price${times}: ${parts.join(", ")}; such requests cost more than they earn`;
}
