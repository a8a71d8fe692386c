/** The groups that a key can be in, with the facts needed to choose one. */
import { type Catalog, type Group, groupServes } from "../../values/catalog.ts";
import { formatUsd } from "../../values/money.ts";
import { type KeyGroupAnswer, KeyGroupsShape } from "../answers/own.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import type { OwnerParts } from "./contract.ts";
import { plansOf } from "./overview.ts";
import type { OwnScope } from "./own-store.ts";

export function keyGroupsRoute({ store, catalog, settings }: OwnerParts, scope: OwnScope): ConsoleRoute {
  return route({
    method: "GET",
    path: "/key-groups",
    id: "listKeyGroups",
    summary: "List the groups that a key can be in: who pays, which models, at which prices",
    answers: { 200: KeyGroupsShape },
    async handle() {
      const { cards, storeTimeMs } = (await store.listCards(scope.tag)) ?? { cards: [], storeTimeMs: 0 };
      const plans = plansOf(scope.owner.account.plan, cards);
      const running = new Set(cards.filter(({ fromMs }) => fromMs <= storeTimeMs).map(({ group }) => group));
      const items = [...catalog().groups.values()].map((group) => showGroup(group, catalog(), plans, running));
      return { status: 200, body: { address: settings.publicUrl ?? null, items } };
    },
  });
}

function showGroup(
  group: Group,
  catalog: Catalog,
  plans: ReadonlySet<string>,
  running: ReadonlySet<string>,
): KeyGroupAnswer {
  const { name, kind, fallback, multiplier, limits } = group;
  // A card also grants its plan, so models that a card would open are listed even without the card.
  const ofCards = [...catalog.cards.values()].filter((card) => card.group === name).map(({ plan }) => plan);
  const opened = kind === "time_card" ? new Set([...plans, ...ofCards]) : plans;
  const models = [...catalog.models.values()].filter(
    (model) => groupServes(group, model.name) && model.plans.some((plan) => opened.has(plan)),
  );
  return {
    name,
    kind,
    falls_back: fallback === "money",
    multiplier: formatUsd(multiplier * 1_000n),
    models: models.map((model) => model.name),
    card_runs: running.has(name),
    requests_per_minute: limits.requestsPerMinute ?? null,
    tokens_per_minute: limits.tokensPerMinute ?? null,
    concurrency: limits.concurrency,
  };
}
