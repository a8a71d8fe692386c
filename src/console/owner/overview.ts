/** The overview of an account: what was spent, what is about to run out, and the state of its models. */
import type { Entitlement } from "../../store/records.ts";
import type { Catalog, Model } from "../../values/catalog.ts";
import { type OverviewAnswer, OverviewShape } from "../answers/own.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import type { UpstreamState } from "../routes/upstreams.ts";
import type { OwnerParts } from "./contract.ts";
import type { OwnScope } from "./own-store.ts";
import { recentSpend } from "./spend.ts";
import { warningsOf } from "./warnings.ts";

export function overviewRoute(parts: OwnerParts, scope: OwnScope): ConsoleRoute {
  const { store, clock, catalog } = parts;
  return route({
    method: "GET",
    path: "/overview",
    id: "showOverview",
    summary: "Show what was spent, what is about to run out, and whether the models work",
    answers: { 200: OverviewShape },
    async handle() {
      const { account } = scope.owner;
      const [spend, warned] = await Promise.all([recentSpend(store, scope.tag, clock), warningsOf(parts, account)]);
      const { warnings, cards } = warned;
      const models = modelStates(catalog(), plansOf(account.plan, cards), parts.upstreams?.() ?? []);
      return { status: 200, body: { ...spend, warnings, models } };
    },
  });
}

/** The plan of an account and those of its cards. */
export function plansOf(plan: string, cards: readonly Entitlement[]): ReadonlySet<string> {
  return new Set([plan, ...cards.map((card) => card.plan)]);
}

/** The state of each model that one of the plans includes. Owners see only the result, not the upstreams. */
function modelStates(
  catalog: Catalog,
  plans: ReadonlySet<string>,
  upstreams: readonly UpstreamState[],
): OverviewAnswer["models"] {
  const states = new Map(upstreams.map((one) => [one.name, one]));
  const isWell = ({ routes }: Model) =>
    routes.some(({ upstream, upstreamModel }) => {
      const state = states.get(upstream);
      // An upstream that has had no requests yet counts as healthy.
      return state === undefined || (state.health === "healthy" && !state.limitedModels.has(upstreamModel));
    });
  return [...catalog.models.values()]
    .filter((model) => model.plans.some((plan) => plans.has(plan)))
    .map((model) => ({ model: model.name, state: isWell(model) ? "up" : "trouble" }));
}
