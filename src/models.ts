/** `GET /v1/models`: what a key may use, in the shape that the client's SDK reads (protocols.md section 4). */
import type { KeyView } from "./store/contract.ts";
import { type Catalog, groupServes, type Model } from "./values/catalog.ts";

/** Page size of the messages shape, and the most that a client may ask for. */
const PAGE_DEFAULT = 20;
const PAGE_MAX = 1_000;

/**
 * The models that a key's group serves and its plans list. For a time-card group the plans of its cards count too,
 * whether or not one is running: a catalog that is empty until the first redemption helps nobody.
 */
export function modelsFor(view: KeyView, catalog: Catalog): Model[] {
  const group = catalog.groups.get(view.key.group);
  if (!group) return [];
  const plans = new Set([view.account.plan, ...runningPlans(view)]);
  if (group.kind === "time_card") {
    for (const card of catalog.cards.values()) if (card.group === group.name) plans.add(card.plan);
  }
  return [...catalog.models.values()].filter(
    (model) => groupServes(group, model.name) && model.plans.some((plan) => plans.has(plan)),
  );
}

function runningPlans(view: KeyView): string[] {
  return view.entitlements.filter((card) => card.fromMs <= view.storeTimeMs).map((card) => card.plan);
}

/** The list as OpenAI's SDKs read it. */
export function asOpenAiList(models: readonly Model[]): object {
  return { object: "list", data: models.map(asOpenAiModel) };
}

export function asOpenAiModel(model: Model): object {
  return { id: model.name, object: "model", created: 0, owned_by: "tollgate" };
}

/** One page of the list as Anthropic's SDKs read it. */
export function asAnthropicPage(models: readonly Model[], query: URLSearchParams): object {
  const limit = Math.min(PAGE_MAX, Math.max(1, Number(query.get("limit")) || PAGE_DEFAULT));
  const after = models.findIndex((model) => model.name === query.get("after_id"));
  const before = models.findIndex((model) => model.name === query.get("before_id"));
  const rest = before >= 0 ? models.slice(Math.max(0, before - limit), before) : models.slice(after + 1);
  const page = rest.slice(0, limit);
  return {
    data: page.map(asAnthropicModel),
    has_more: before >= 0 ? before - limit > 0 : rest.length > page.length,
    first_id: page[0]?.name ?? null,
    last_id: page.at(-1)?.name ?? null,
  };
}

export function asAnthropicModel(model: Model): object {
  return {
    type: "model",
    id: model.name,
    display_name: model.name,
    created_at: "1970-01-01T00:00:00Z",
    max_input_tokens: model.contextTokens,
    max_tokens: model.maxOutputTokens,
    capabilities: null,
    lifecycle: "active",
  };
}
