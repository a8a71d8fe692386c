/** The catalog in the form of the file: plans, models with their prices, groups and cards. */

import type { CardKind, Catalog, Group, Model, Route } from "../../values/catalog.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { formatUsd } from "../../values/money.ts";
import type { Price, TierPrices, UnitPrices } from "../../values/price.ts";
import { formatDuration, formatMultiplier } from "../compile/units.ts";
import { writtenRules } from "./rules.ts";

/** The catalog's sections of the file. */
export function writtenCatalog({ plans, models, groups, cards }: Catalog): JsonObject {
  return {
    plans: Object.fromEntries([...plans].map((name) => [name, {}])),
    models: written(models, writtenModel),
    groups: written(groups, writtenGroup),
    cards: written(cards, writtenCard),
  };
}

function written<T>(map: ReadonlyMap<string, T>, write: (one: T) => JsonObject): JsonObject {
  return Object.fromEntries([...map].map(([name, one]) => [name, write(one)]));
}

function writtenModel(model: Model): JsonObject {
  const { mediaTokens, toolCalls } = model;
  return {
    plans: model.plans,
    price: writtenPrice(model.price),
    context_tokens: model.contextTokens,
    max_output_tokens: model.maxOutputTokens,
    default_output_tokens: model.defaultOutputTokens,
    input_bytes_per_token: model.inputBytesPerToken,
    media_tokens: {
      image: mediaTokens.image,
      image_max: mediaTokens.imageMax,
      file: mediaTokens.file,
      file_max: mediaTokens.fileMax,
    },
    tool_calls: { held: toolCalls.held, max: toolCalls.max },
    routes: model.routes.map(writtenRoute),
    rules: writtenRules(model.rules),
  };
}

function writtenRoute({ upstream, upstreamModel, weight, priority, answersAs, cost, capabilities }: Route): JsonObject {
  return {
    upstream,
    model: upstreamModel,
    weight,
    priority,
    answers_as: answersAs,
    cost: writtenPrice(cost),
    capabilities: Object.fromEntries(Object.entries(capabilities).map(([name, value]) => [fileName(name), value])),
  };
}

/** The file uses the names of `values/catalog.ts`, in snake_case. */
const fileName = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function writtenPrice(price: Price): JsonObject {
  const perCall = (wanted: boolean) =>
    Object.fromEntries(
      [...price.tools]
        .filter(([name]) => (price.extras?.has(name) ?? false) === wanted)
        .map(([name, usd]) => [name, formatUsd(usd)]),
    );
  return {
    ...unitPrices(price),
    tiers: written(price.tiers, (tier) => ({ ...unitPrices(tier), above_tokens: steps(tier) })),
    above_tokens: steps(price),
    tools: perCall(false),
    options: perCall(true),
  };
}

/** US dollars per million tokens. */
function unitPrices({ input, cachedInput, cacheWrite, cacheWrite1h, output }: UnitPrices): JsonObject {
  return {
    input: formatUsd(input),
    cached_input: formatUsd(cachedInput),
    cache_write: formatUsd(cacheWrite),
    cache_write_1h: formatUsd(cacheWrite1h),
    output: formatUsd(output),
  };
}

function steps({ aboveTokens = [] }: TierPrices): readonly JsonObject[] {
  return aboveTokens.map(({ tokens, prices }) => ({ tokens, ...unitPrices(prices) }));
}

function writtenGroup({ kind, fallback, models, multiplier, limits, rules }: Group): JsonObject {
  return {
    kind,
    fallback: kind === "time_card" ? (fallback ?? "none") : undefined,
    models,
    multiplier: formatMultiplier(multiplier),
    limits: {
      requests_per_minute: limits.requestsPerMinute,
      tokens_per_minute: limits.tokensPerMinute,
      concurrency: limits.concurrency,
      per_key: limits.perKey,
    },
    rules: writtenRules(rules),
  };
}

function writtenCard({ plan, group, lastsMs, starts, quotaSpend }: CardKind): JsonObject {
  return {
    plan,
    group,
    lasts: formatDuration(lastsMs),
    starts,
    quota: quotaSpend === undefined ? undefined : { spend: formatUsd(quotaSpend) },
  };
}
