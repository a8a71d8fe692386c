/**
 * What a request would cost at most, in the terms of every group that could pay: facts of the envelope in, integers out.
 * Never reads content.
 */
import type { AdmitAsk, GroupTerms } from "../store/admission.ts";
import { type Catalog, type Group, groupServes, type Model, type Route } from "../values/catalog.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import { leastNano, NANO_USD_MAX, type NanoUsd, nanoUsd } from "../values/money.ts";
import { affordableOutput, holdFor, type Multiplier } from "../values/price.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";

/** What admission must know of a request; accept's envelope has these members. */
export interface RequestFacts {
  readonly protocol: Protocol;
  readonly model: string;
  readonly stream: boolean;
  /** `implied`: the endpoint has no such member, and the most that the model can give is held. */
  readonly limit: { readonly field: string; readonly value: number; readonly implied?: boolean } | undefined;
  /** Answers asked for at once; 1 but on chat. */
  readonly choices: number;
  readonly textBytes: number;
  readonly images: number;
  readonly files: number;
  /** A service tier or speed other than the standard one. */
  readonly serviceTier: string | undefined;
  /** Types of tools that the upstream would run and bill. */
  readonly hostedTools: readonly string[];
}

/** The request measured against the catalog. */
export interface Terms {
  readonly model: Model;
  /** Input tokens at most: what the hold and the token bucket count. */
  readonly inputTokens: number;
  /** Input tokens at 4 bytes each, for a bill when the upstream counts nothing (promise 3). */
  readonly inputEstimate: number;
  /** Output tokens of each choice that are held: the client's limit within the model's maximum, or the default. */
  readonly outputLimit: number;
  readonly choices: number;
  readonly tier: string | undefined;
  /** Price names of the hosted tools asked for. */
  readonly tools: readonly string[];
  readonly plans: AdmitAsk["plans"];
  readonly groups: readonly OfferedTerms[];
}

/** What the request would cost in one group: its rules may add text that only its own keys pay for. */
export interface OfferedTerms extends GroupTerms {
  readonly inputTokens: number;
  readonly inputEstimate: number;
}

/** Least output worth paying the input for (promise 1). */
const USEFUL_OUTPUT_MIN = 16;
/** Calls of each hosted tool that a hold covers; more are charged to free funds. */
const HOSTED_CALLS_HELD = 10;
const ESTIMATE_BYTES_PER_TOKEN = 4;

/** Measures a request, or refuses what has no price (promise 14). */
export function measure(facts: RequestFacts, model: Model, catalog: Catalog): Terms | Refusal {
  const unpriced = findUnpriced(facts, model);
  if (unpriced) return unpriced;
  const serving = [...catalog.groups.values()].filter((group) => groupServes(group, model.name));
  // One figure for the token bucket, whoever pays; settlement corrects it.
  const most = inputOf(facts, model, Math.max(0, ...serving.map((group) => group.addedInputBytes)));
  const asked = facts.limit?.value ?? model.defaultOutputTokens;
  const terms = {
    model,
    ...most,
    outputLimit: Math.max(Math.min(asked, model.maxOutputTokens), leastSent(model, facts.protocol)),
    choices: facts.choices,
    tier: facts.serviceTier,
    tools: facts.hostedTools.map(priceName),
    plans: model.plans,
  };
  const groups = serving.map((group) => termsOf(group, { ...terms, ...inputOf(facts, model, group.addedInputBytes) }));
  return { ...terms, groups };
}

/** Translations raise a limit to the least that the upstream's protocol takes, so that is held for. */
function leastSent(model: Model, client: Protocol): number {
  const translated = model.routes.filter((route) => route.protocol !== client);
  return Math.max(0, ...translated.map((route) => PROTOCOLS[route.protocol].limitFloor));
}

/** The input with what the operator's rules may add to it: the model's and its routes', and `addedBytes` of a group's. */
function inputOf(
  facts: RequestFacts,
  model: Model,
  addedBytes: number,
): { readonly inputTokens: number; readonly inputEstimate: number } {
  const media = facts.images * model.mediaTokens.image + facts.files * model.mediaTokens.file;
  const bytes = facts.textBytes + model.addedInputBytes + addedBytes;
  const tokensAt = (bytesPerToken: number) => Math.min(model.contextTokens, Math.ceil(bytes / bytesPerToken) + media);
  return { inputTokens: tokensAt(model.inputBytesPerToken), inputEstimate: tokensAt(ESTIMATE_BYTES_PER_TOKEN) };
}

/** `web_search_20250305` and `web_search` have one price. */
function priceName(toolType: string): string {
  return toolType.replace(/_(?:preview(?:_\d[\d_]*)?|\d{4}_?\d{2}_?\d{2})$/, "");
}

/** Where every way to a model is a translation that leaves hosted tools out, they cost nothing: convert has the word. */
function runsHostedTools(route: Route, client: Protocol): boolean {
  return route.protocol === client || route.capabilities.openaiNative;
}

function findUnpriced(facts: RequestFacts, model: Model): Refusal | undefined {
  const refuse = (param: string, what: string) =>
    refusal("unsupported_parameter", { model: facts.model, param, detail: `${what} is not offered for this model.` });
  if (facts.serviceTier !== undefined && !model.price.tiers.has(facts.serviceTier)) {
    return refuse("service_tier", `The tier "${facts.serviceTier}"`);
  }
  if (!model.routes.some((route) => runsHostedTools(route, facts.protocol))) return undefined;
  const tool = facts.hostedTools.find((type) => !model.price.tools.has(priceName(type)));
  return tool === undefined ? undefined : refuse("tools", `The hosted tool "${tool}"`);
}

/** A request measured for whoever pays. */
export type Measured = Omit<Terms, "groups">;

function termsOf(group: Group, terms: Measured): OfferedTerms {
  const hold = (outputPerChoice: number) => holdOf(terms, group.multiplier, outputPerChoice);
  return {
    group: group.name,
    kind: group.kind,
    holdFull: hold(terms.outputLimit),
    holdMin: hold(Math.min(terms.outputLimit, USEFUL_OUTPUT_MIN)),
    requestsPerMinute: group.limits.requestsPerMinute,
    tokensPerMinute: group.limits.tokensPerMinute,
    concurrency: group.limits.concurrency,
    perKey: group.limits.perKey,
    inputTokens: terms.inputTokens,
    inputEstimate: terms.inputEstimate,
  };
}

/** The most that a request costs in a group with so many output tokens of each choice. */
export function holdOf(terms: Measured, multiplier: Multiplier, outputPerChoice: number): NanoUsd {
  const tokens = { input: terms.inputTokens, output: outputPerChoice * terms.choices };
  const amount = holdFor(terms.model.price, multiplier, tokens, terms.tier);
  // No balance can cover more than the maximum, and the store takes nothing above it.
  return leastNano(nanoUsd(amount + toolsHold(terms, multiplier)), NANO_USD_MAX);
}

function toolsHold(terms: Measured, multiplier: Multiplier): bigint {
  let perCall = 0n;
  for (const tool of terms.tools) perCall += terms.model.price.tools.get(tool) ?? 0n;
  return (perCall * BigInt(HOSTED_CALLS_HELD) * multiplier + 999_999n) / 1_000_000n;
}

/**
 * The output limit that a hold pays for when it is less than the whole (the clamp of promise 1).
 * @param terms with the input that the hold was made for.
 * @param held what admission set aside: at least the group's holdMin.
 */
export function affordableLimit(terms: Measured, multiplier: Multiplier, held: NanoUsd): number {
  const funds = nanoUsd(held - toolsHold(terms, multiplier));
  const output = affordableOutput(terms.model.price, multiplier, terms.inputTokens, funds, terms.tier);
  return Math.min(terms.outputLimit, Math.floor(output / terms.choices));
}
