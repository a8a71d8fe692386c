/** Reads models, groups, plans and cards, and checks every reference between them. */
import { createHash } from "node:crypto";
import {
  type Capabilities,
  type CardKind,
  type Catalog,
  defaultCapabilities,
  type Group,
  groupServes,
  type Limits,
  type MediaTokens,
  type Model,
  type Route,
} from "../../values/catalog.ts";
import type { PassedMembers } from "../../values/members.ts";
import { MULTIPLIER_ONE, type Multiplier, type Price } from "../../values/price.ts";
import type { Protocol } from "../../values/protocol.ts";
import { actionsFor, addedBytes, type Rule } from "../../values/rules.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import { type ConfigPath, suggestion } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { readCost, readPrice, readUsd } from "./prices.ts";
import type { Loose, LooseConfig, Reader } from "./reader.ts";
import { readRules } from "./rules.ts";
import { parseMultiplier } from "./units.ts";
import { readPassedMembers } from "./upstream.ts";

type ModelFile = Loose<ConfigFile["models"][string]>;
type RouteFile = Loose<ConfigFile["models"][string]["routes"][number]>;
type GroupFile = Loose<ConfigFile["groups"][string]>;
type CardFile = Loose<NonNullable<ConfigFile["cards"]>[string]>;
type CapabilitiesFile = NonNullable<RouteFile["capabilities"]>;

/** The catalog. `known` has the names as written, so that a reference to a faulty entry is not itself a problem. */
export function readCatalog(reader: Reader, file: LooseConfig, known: KnownNames): Catalog {
  const upstreamRules = new Map(
    entries(file.upstreams).map(([name, upstream]) => [
      name,
      readRules(reader, ["upstreams", name, "rules"], upstream.rules, upstream.protocol),
    ]),
  );
  const passedMembers = new Map(
    entries(file.upstreams).map(([name, upstream]) => [name, readPassedMembers(reader, ["upstreams", name], upstream)]),
  );
  const places: Places = { file, known, upstreamRules, passedMembers };
  const models = new Map(
    entries(file.models).map(([name, model]) => [name, readModel(reader, ["models", name], name, model, places)]),
  );
  const groups = new Map(
    entries(file.groups).map(([name, group]) => [name, readGroup(reader, ["groups", name], name, group, known)]),
  );
  const cards = new Map(
    entries(file.cards).map(([name, card]) => [name, readCard(reader, ["cards", name], name, card, file, known)]),
  );
  const catalog = {
    models,
    groups,
    cards,
    plans: new Set(Object.keys(file.plans ?? {})),
    defaultPlan: readDefaultPlan(reader, file, known),
  };
  return { ...catalog, version: versionOf(catalog) };
}

/** What reading a model needs from other parts of the file. */
interface Places {
  readonly file: LooseConfig;
  readonly known: KnownNames;
  readonly upstreamRules: ReadonlyMap<string, readonly Rule[]>;
  readonly passedMembers: ReadonlyMap<string, PassedMembers>;
}

/** The names in the file, including those of faulty entries. */
export interface KnownNames {
  /** The keys at the top of the file. */
  readonly top: Readonly<Record<string, unknown>>;
  readonly upstreams: Readonly<Record<string, unknown>>;
  readonly plans: Readonly<Record<string, unknown>>;
  readonly models: Readonly<Record<string, unknown>>;
  readonly groups: Readonly<Record<string, unknown>>;
}

function entries<T>(map: Readonly<Record<string, T | undefined>> | undefined): [string, T][] {
  return Object.entries(map ?? {}).filter((entry): entry is [string, T] => entry[1] !== undefined);
}

function readDefaultPlan(reader: Reader, file: LooseConfig, known: KnownNames): string {
  const plans = Object.keys(file.plans ?? {});
  if (file.default_plan !== undefined) {
    reader.reference(["default_plan"], file.default_plan, "plan", known.plans);
    return file.default_plan;
  }
  if (plans.length > 1) {
    reader.complain(["default_plan"], `"default_plan" is missing: with several plans, it must name one of them`, "key");
  }
  return plans[0] ?? "";
}

function readModel(reader: Reader, path: ConfigPath, name: string, model: ModelFile, places: Places): Model {
  for (const [index, plan] of (model.plans ?? []).entries()) {
    reader.reference([...path, "plans", index], plan, "plan", places.known.plans);
  }
  const pricePath = [...path, "price"];
  const price = readPrice(reader, pricePath, model.price);
  const contextTokens = model.context_tokens ?? LIMITS.tokensMax;
  const maxOutputTokens = model.max_output_tokens ?? Math.min(DEFAULTS.maxOutputTokens, contextTokens);
  if (maxOutputTokens > contextTokens) {
    reader.refuse([...path, "max_output_tokens"], `must not be above context_tokens (${contextTokens})`);
  }
  const defaultOutputTokens = model.default_output_tokens ?? Math.min(DEFAULTS.defaultOutputTokens, maxOutputTokens);
  if (defaultOutputTokens > maxOutputTokens) {
    reader.refuse([...path, "default_output_tokens"], `must not be above max_output_tokens (${maxOutputTokens})`);
  }
  const toolCalls = readToolCalls(reader, [...path, "tool_calls"], model);
  const routes = (model.routes ?? []).flatMap((route, index) =>
    route ? [readRoute(reader, [...path, "routes", index], route, { name, model, price, pricePath, ...places })] : [],
  );
  const rules = readRules(reader, [...path, "rules"], model.rules);
  return {
    name,
    plans: (model.plans ?? []).filter((plan) => plan !== undefined),
    price,
    contextTokens,
    maxOutputTokens,
    defaultOutputTokens,
    inputBytesPerToken: model.input_bytes_per_token ?? DEFAULTS.inputBytesPerToken,
    mediaTokens: readMediaTokens(reader, [...path, "media_tokens"], model.media_tokens),
    toolCalls,
    routes,
    rules,
    addedInputBytes: Math.max(0, ...routes.map((route) => addedBytes(actionsFor([{ rules }, route], route.protocol)))),
  };
}

function readToolCalls(reader: Reader, path: ConfigPath, { tool_calls }: ModelFile): Model["toolCalls"] {
  const max = tool_calls?.max ?? DEFAULTS.toolCallsMax;
  const held = tool_calls?.held ?? Math.min(DEFAULTS.toolCallsHeld, max);
  if (held > max) reader.refuse([...path, "held"], `must not be above max (${max})`);
  return { held, max };
}

function readRoute(
  reader: Reader,
  path: ConfigPath,
  route: RouteFile,
  of: Places & { name: string; model: ModelFile; price: Price; pricePath: ConfigPath },
): Route {
  const upstream = route.upstream ?? "";
  reader.reference([...path, "upstream"], route.upstream, "upstream", of.known.upstreams);
  const server = own(of.file.upstreams, upstream);
  const protocol: Protocol = server?.protocol ?? "chat";
  return {
    upstream,
    protocol,
    upstreamModel: route.model ?? of.name,
    weight: route.weight ?? DEFAULTS.routeWeight,
    priority: route.priority ?? DEFAULTS.routePriority,
    cost: route.cost
      ? readCost(reader, [...path, "cost"], route.cost, { path: of.pricePath, file: of.model.price, read: of.price })
      : of.price,
    capabilities: {
      ...defaultCapabilities(protocol),
      promptCache: server?.prompt_cache ?? DEFAULTS.promptCache,
      ...namedCapabilities(of.model.capabilities),
      ...namedCapabilities(route.capabilities),
    },
    rules: of.upstreamRules.get(upstream) ?? [],
    passedMembers: of.passedMembers.get(upstream),
    stateful: server?.stateful === true && protocol === "responses" ? true : undefined,
    answersAs: route.answers_as?.filter((name) => name !== undefined),
  };
}

function readMediaTokens(reader: Reader, path: ConfigPath, file: ModelFile["media_tokens"]): MediaTokens {
  const tokens = {
    image: file?.image ?? Math.min(DEFAULTS.imageTokens, file?.image_max ?? DEFAULTS.imageTokens),
    file: file?.file ?? Math.min(DEFAULTS.fileTokens, file?.file_max ?? DEFAULTS.fileTokens),
    imageMax: file?.image_max,
    fileMax: file?.file_max,
  };
  if ((tokens.imageMax ?? tokens.image) < tokens.image) {
    reader.refuse([...path, "image_max"], `must not be below image (${tokens.image})`);
  }
  if ((tokens.fileMax ?? tokens.file) < tokens.file) {
    reader.refuse([...path, "file_max"], `must not be below file (${tokens.file})`);
  }
  return tokens;
}

function own<T>(map: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return map !== undefined && name in map ? map[name] : undefined;
}

/** The capabilities that are set in the file, under the names of `values/catalog.ts`. */
function namedCapabilities(file: CapabilitiesFile | undefined): Partial<Capabilities> {
  const named: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(file ?? {})) {
    if (value === undefined) continue;
    const name = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    named[name] = Array.isArray(value) ? value.filter((item) => item !== undefined) : value;
  }
  return named;
}

function readGroup(reader: Reader, path: ConfigPath, name: string, group: GroupFile, known: KnownNames): Group {
  const patterns = (group.models ?? []).map((pattern, index) => {
    if (pattern !== undefined) checkPattern(reader, [...path, "models", index], pattern, known);
    return pattern;
  });
  const limits: Limits = {
    requestsPerMinute: group.limits?.requests_per_minute,
    tokensPerMinute: group.limits?.tokens_per_minute,
    concurrency: group.limits?.concurrency ?? DEFAULTS.concurrency,
    perKey: group.limits?.per_key ?? DEFAULTS.limitsPerKey,
  };
  const rules = readRules(reader, [...path, "rules"], group.rules);
  return {
    name,
    kind: group.kind ?? "pay_per_use",
    models: patterns.filter((pattern) => pattern !== undefined),
    multiplier: readMultiplier(reader, [...path, "multiplier"], group.multiplier),
    limits,
    fallback: fallbackOf(reader, path, group),
    rules,
    addedInputBytes: addedBytes(rules.map((rule) => rule.action)),
  };
}

/** The `fallback` of a group. Only time_card groups can have one. */
function fallbackOf(
  reader: Reader,
  path: ConfigPath,
  { kind, fallback }: { readonly kind?: string; readonly fallback?: string },
): "money" | undefined {
  if (fallback !== "money") return undefined;
  if (kind !== "time_card") reader.refuse([...path, "fallback"], "is only for groups of kind time_card");
  return fallback;
}

/** Refuses a pattern that matches no model: it is a misspelling, and the group would answer every request with 403. */
function checkPattern(reader: Reader, path: ConfigPath, pattern: string, known: KnownNames): void {
  if (pattern in known.models) return;
  const names = Object.keys(known.models);
  const probe = { models: [pattern] } as unknown as Group;
  if (names.length === 0 || names.some((name) => groupServes(probe, name))) return;
  const near = suggestion(pattern, names);
  reader.refuse(path, `must match a model of this file${near === "" ? "; names are case-sensitive" : near}`);
}

function readMultiplier(reader: Reader, path: ConfigPath, factor: string | number | undefined): Multiplier {
  if (factor === undefined) return MULTIPLIER_ONE;
  const multiplier = reader.isFloat(path) ? undefined : parseMultiplier(factor);
  if (multiplier !== undefined) return multiplier;
  reader.refuse(
    path,
    `must be a factor as a quoted decimal such as "1.5": from 0 to ${LIMITS.multiplierMax}, with at most six decimals`,
  );
  return MULTIPLIER_ONE;
}

function readCard(
  reader: Reader,
  path: ConfigPath,
  name: string,
  card: CardFile,
  file: LooseConfig,
  known: KnownNames,
): CardKind {
  reader.reference([...path, "plan"], card.plan, "plan", known.plans);
  reader.reference([...path, "group"], card.group, "group", known.groups);
  const kind = card.group === undefined ? undefined : own(file.groups, card.group)?.kind;
  if (kind === "pay_per_use") {
    reader.refuse([...path, "group"], "must name a group of kind time_card; this one is paid from the balance");
  }
  const quotaPath = [...path, "quota", "spend"];
  const quotaSpend = readUsd(reader, quotaPath, card.quota?.spend);
  if (quotaSpend === 0n) reader.refuse(quotaPath, "must be above 0; leave it out for a card without a quota");
  return {
    name,
    plan: card.plan ?? "",
    group: card.group ?? "",
    lastsMs: reader.durationMs([...path, "lasts"], card.lasts, 1, LIMITS.cardMsMax),
    starts: card.starts ?? DEFAULTS.cardStarts,
    quotaSpend,
  };
}

const VERSION_CHARS = 12;

/**
 * The first characters of the SHA-256 of the catalog in a canonical form that does not depend on the order of the file.
 */
function versionOf(catalog: Omit<Catalog, "version">): string {
  return createHash("sha256").update(canonical(catalog)).digest("hex").slice(0, VERSION_CHARS);
}

function canonical(value: unknown): string {
  if (value instanceof Map) return canonical(Object.fromEntries(value));
  if (value instanceof Set) return canonical([...value].sort());
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "bigint") return `"${value}n"`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}
