/** `GET /models` of the console: the catalog as it applies to the account. */
import type { Store } from "../../store/contract.ts";
import { modelRefusal, runningCards } from "../../store/decision.ts";
import type { Account, Entitlement } from "../../store/records.ts";
import { type Catalog, EFFORTS, type Group, groupServes, type Model, type Route } from "../../values/catalog.ts";
import type { Cause } from "../../values/errors.ts";
import { formatUsd } from "../../values/money.ts";
import type { UnitPrices } from "../../values/price.ts";
import { type OwnModelAnswer, OwnModelsShape } from "../answers/own-usage.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import type { OwnScope } from "./own-store.ts";

interface ModelParts {
  readonly store: Pick<Store, "listCards">;
  readonly catalog: () => Catalog;
}

/** The account and its running cards, at one instant. */
interface Means {
  readonly account: Account;
  readonly running: readonly Entitlement[];
}

export function ownModelRoutes({ store, catalog }: ModelParts, scope: OwnScope): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/models",
      id: "listOwnModels",
      summary: "List the models: prices, limits, groups, and what the account can use now",
      answers: { 200: OwnModelsShape },
      async handle() {
        const { account } = scope.owner;
        const cards = await store.listCards(scope.tag);
        const means = { account, running: cards ? runningCards(cards.cards, cards.storeTimeMs) : [] };
        const { models, groups } = catalog();
        const items = [...models.values()].map((model) => showModel(model, [...groups.values()], means));
        return { status: 200, body: { items } };
      },
    }),
  ];
}

function showModel(model: Model, all: readonly Group[], means: Means): OwnModelAnswer {
  const groups = all
    .filter((group) => groupServes(group, model.name))
    .map((group) => ({
      name: group.name,
      kind: group.kind,
      multiplier: formatUsd(group.multiplier * 1_000n),
      refusal: refusalOf(model, group, means) ?? null,
    }));
  const { price } = model;
  const steps = price.aboveTokens.map(({ tokens, prices }) => otherPrices(null, tokens, prices));
  const tiers = [...price.tiers].flatMap(([tier, prices]) => [
    otherPrices(tier, null, prices),
    ...(prices.aboveTokens ?? []).map((step) => otherPrices(tier, step.tokens, step.prices)),
  ]);
  return {
    name: model.name,
    plans: model.plans,
    groups,
    usable: groups.some(({ refusal }) => refusal === null),
    price_usd_per_million: unitsOf(price),
    other_prices: [...steps, ...tiers],
    tools: [...price.tools].map(([name, each]) => ({ name, usd: formatUsd(each) })),
    context_tokens: model.contextTokens,
    max_output_tokens: model.maxOutputTokens,
    default_output_tokens: model.defaultOutputTokens,
    ...thinkingOf([...model.routes].sort((a, b) => a.priority - b.priority)[0]),
  };
}

/** Why a request of a key in this group would be refused now, apart from limits and budgets. */
function refusalOf(model: Model, group: Group, { account, running }: Means): Cause | undefined {
  if (account.status !== "normal") return account.status === "closed" ? "revoked_key" : "suspended";
  const fallback = group.fallback === "money";
  const cause = modelRefusal(
    model.plans,
    { kind: group.kind, fallback },
    { key: { group: group.name }, plan: account.plan, running },
  );
  if (cause !== undefined) return cause;
  const card = group.kind === "time_card" ? cardRefusal(model, group, running) : "no_entitlement";
  if (card === undefined) return undefined;
  if (group.kind === "time_card" && !fallback) return card;
  const isFree = Object.values(unitPricesOf(model.price)).every((price) => price === 0n);
  return account.balance > account.held || isFree ? undefined : "insufficient_balance";
}

function cardRefusal(model: Model, group: Group, running: readonly Entitlement[]): Cause | undefined {
  const listed = running.filter((card) => card.group === group.name && model.plans.includes(card.plan));
  if (listed.length === 0) return "no_entitlement";
  const pays = listed.some(({ quota, spent, held }) => quota === undefined || quota > spent + held);
  return pays ? undefined : "quota_used";
}

function unitPricesOf({ input, cachedInput, cacheWrite, cacheWrite1h, output }: UnitPrices) {
  return { input, cached_input: cachedInput, cache_write: cacheWrite, cache_write_1h: cacheWrite1h, output };
}

function unitsOf(prices: UnitPrices): OwnModelAnswer["price_usd_per_million"] {
  const { input, cached_input, cache_write, cache_write_1h, output } = unitPricesOf(prices);
  return {
    input: formatUsd(input),
    cached_input: formatUsd(cached_input),
    cache_write: formatUsd(cache_write),
    cache_write_1h: formatUsd(cache_write_1h),
    output: formatUsd(output),
  };
}

function otherPrices(tier: string | null, tokens: number | null, prices: UnitPrices) {
  return { tier, above_input_tokens: tokens, usd_per_million: unitsOf(prices) };
}

/** The thinking switch of the model's first route; see docs/translation-rules.md rule 27. */
function thinkingOf(route: Route | undefined): Pick<OwnModelAnswer, "thinking" | "efforts"> {
  if (route === undefined) return { thinking: "none", efforts: [] };
  const { protocol, capabilities } = route;
  const { thinking, thinkingOff, thinkingSwitch } = capabilities;
  const efforts = EFFORTS.filter((effort) => effort !== "none" && capabilities.efforts.includes(effort));
  const isMessages = protocol === "messages";
  const isOfChat = protocol === "chat" && thinkingSwitch !== "reasoning_effort";
  if (isMessages ? thinking === "none" : efforts.length === 0 && !isOfChat) return { thinking: "none", efforts: [] };
  const hasSwitch = isMessages ? thinking !== "always" : isOfChat || capabilities.efforts.includes("none");
  return { thinking: hasSwitch ? "switch" : thinkingOff === "reject" ? "fixed" : "least", efforts };
}
