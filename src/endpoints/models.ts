/** Which models a key may use, and `GET /v1/models` in the formats that the clients' SDKs read. */
import { keyAllows, modelRefusal, runningCards } from "../store/decision.ts";
import type { KeyView } from "../store/records.ts";
import { type Catalog, type Group, groupServes, type Model } from "../values/catalog.ts";
import { type Refusal, refusal } from "../values/errors.ts";

/** Default and maximum page size of the messages format. */
const PAGE_DEFAULT = 20;
const PAGE_MAX = 1_000;

/**
 * The models that a key's group serves and its plans list. For a time-card group, the plans of all its cards count,
 * whether or not one is running, because a catalog that is empty before the first redemption is no help.
 */
export function modelsFor(view: KeyView, catalog: Catalog): Model[] {
  const group = catalog.groups.get(view.key.group);
  if (!group) return [];
  const { plan, running } = plansOf(view);
  const plans = new Set([plan, ...running.map((card) => card.plan)]);
  if (group.kind === "time_card") {
    for (const card of catalog.cards.values()) if (card.group === group.name) plans.add(card.plan);
  }
  return [...catalog.models.values()].filter(
    ({ name, plans: of }) => groupServes(group, name) && of.some((one) => plans.has(one)) && keyAllows(view.key, name),
  );
}

/**
 * The model of this name for a key, judged like admission, but without funds and limits.
 * @returns a refusal: `unknown_model`, `not_in_plan`, `group_mismatch`, `model_not_allowed`.
 */
export function modelFor(view: KeyView, name: string, catalog: Catalog): Model | Refusal {
  const facts = { model: name, group: view.key.group };
  const model = catalog.models.get(name);
  if (!model) return refusal("unknown_model", facts);
  const group = catalog.groups.get(view.key.group);
  const serving = group && groupServes(group, name) ? group : undefined;
  const cause = modelRefusal(model.plans, serving && offerOf(serving), plansOf(view));
  // Without a running card, the plan is not checked: a request would be refused because of the missing card.
  if (cause === undefined || cause === "no_entitlement") {
    return keyAllows(view.key, name) ? model : refusal("model_not_allowed", facts);
  }
  const detail =
    cause === "not_in_plan"
      ? "The model exists, but not in the plan of this account."
      : "The key's group does not serve this model.";
  return refusal(cause, { ...facts, detail });
}

function offerOf({ kind, fallback }: Group) {
  return { kind, fallback: fallback === "money" };
}

function plansOf({ key, account, entitlements, storeTimeMs }: KeyView) {
  return { key, plan: account.plan, running: runningCards(entitlements, storeTimeMs) };
}

/** The list in the format of OpenAI's SDKs. */
export function asOpenAiList(models: readonly Model[]): object {
  return { object: "list", data: models.map(asOpenAiModel) };
}

export function asOpenAiModel(model: Model): object {
  return { id: model.name, object: "model", created: 0, owned_by: "tollgate" };
}

/**
 * One page of the list in the format of Anthropic's SDKs.
 * @param query `limit` from 1 to 1000, and `after_id` or `before_id`.
 * @returns a refusal for an invalid limit, and for a cursor that names no model of this key: with a page from the
 *   beginning instead, a client that follows the cursors would loop.
 */
export function asAnthropicPage(models: readonly Model[], query: URLSearchParams): object | Refusal {
  const limit = limitOf(query.get("limit"));
  if (limit === undefined) return badQuery("limit", `must be a whole number from 1 to ${PAGE_MAX}`);
  const before = query.get("before_id");
  const cursor = before ?? query.get("after_id");
  const at = cursor === null ? -1 : models.findIndex((model) => model.name === cursor);
  if (cursor !== null && at === -1) {
    return badQuery(before === null ? "after_id" : "before_id", "names no model of this key");
  }
  const rest = before === null ? models.slice(at + 1) : models.slice(0, at);
  const page = before === null ? rest.slice(0, limit) : rest.slice(-limit);
  return {
    data: page.map(asAnthropicModel),
    has_more: rest.length > page.length,
    first_id: page[0]?.name ?? null,
    last_id: page.at(-1)?.name ?? null,
  };
}

function limitOf(text: string | null): number | undefined {
  if (text === null) return PAGE_DEFAULT;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= PAGE_MAX ? limit : undefined;
}

function badQuery(param: string, demand: string): Refusal {
  return refusal("wrong_type", { param, detail: `"${param}" ${demand}.` });
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
    line: null,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
  };
}
