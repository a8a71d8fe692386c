/**
 * What a request would cost at most, in the terms of every group that could pay: the envelope in, integers out.
 * Never reads content.
 */
import type { AdmitAsk, GroupTerms } from "../store/admission.ts";
import { type Catalog, type Group, groupServes, type Model, type Route } from "../values/catalog.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { Envelope, MediaPiece } from "../values/members/envelope.ts";
import { isPartOfTier } from "../values/members/tier.ts";
import { leastNano, NANO_USD_MAX, type NanoUsd, nanoUsd } from "../values/money.ts";
import { affordableOutput, type Ceiling, ceilingOf, holdFor, type Multiplier, type Price } from "../values/price.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { toolPriceName } from "../values/tokens/tool-calls.ts";

/** The request measured against the catalog. A permit has it with the input as the group that pays makes it. */
export interface Terms {
  readonly model: Model;
  /** The protocol that the client speaks. */
  readonly client: Protocol;
  /**
   * Input tokens at most: what the token bucket counts. The most text that the rules of any group add is among them, so they may
   * be more than the hold in the key's own group is made for (OfferedTerms.inputTokens).
   */
  readonly inputTokens: number;
  /** Input tokens at 4 bytes each, for a bill when the upstream counts nothing (ARCHITECTURE.md promise 3). */
  readonly inputEstimate: number;
  /** Whether it has a file, whose tokens only the upstream knows. */
  readonly hasFiles: boolean;
  /** Output tokens of each choice that are held: the client's limit within the model's maximum, or the default. */
  readonly outputLimit: number;
  /** Tokens of thinking of each choice that may come beside the limit. */
  readonly thinkingBeside: number;
  readonly choices: number;
  readonly tier: string | undefined;
  /** Every tier that it may be charged at: a translation may leave out what asks for this one. */
  readonly tiers: readonly (string | undefined)[];
  /** Types of the hosted tools that are offered and have no price: no upstream gets them. */
  readonly unpricedTools: readonly string[];
  /** Price names of the hosted tools asked for. */
  readonly tools: readonly string[];
  /** Price names of the extras asked for: each is charged once. */
  readonly options: readonly string[];
  readonly plans: AdmitAsk["plans"];
}

/** A request measured, and what it would cost in each group that serves its model. */
export interface Quote {
  readonly terms: Terms;
  readonly groups: readonly OfferedTerms[];
}

/** What the request would cost in one group: its rules may add text that only its own keys pay for. */
export interface OfferedTerms extends GroupTerms, WorstCase {
  readonly inputEstimate: number;
  readonly dear: WorstCase;
}

/** What the request costs at most in one group with so much input, by its output. */
export interface WorstCase {
  readonly inputTokens: number;
  /** Without what is beside the tokens; one for each tier that the request may be charged at. */
  readonly ceilings: readonly Ceiling[];
  /** What its hosted tools and its extras come to. */
  readonly toolsHold: bigint;
  readonly holdFull: NanoUsd;
  readonly holdMin: NanoUsd;
}

/** Least output worth paying the input for (promise 1). */
const USEFUL_OUTPUT_MIN = 16;
const ESTIMATE_BYTES_PER_TOKEN = 4;
/** Code comes to 0.37. */
const DENSE_TOKENS_PER_BYTE = 0.42;
/** An image whose size nothing tells, such as one behind an address: more than 12 megapixels cost at the dearest rule seen. */
const IMAGE_UNKNOWN_TOKENS = 16_384;

/** Measures a request, or refuses what has no price (promise 14). */
export function measure(facts: Envelope, model: Model, catalog: Catalog): Quote | Refusal {
  const unpriced = findUnpriced(facts, model);
  if (unpriced) return unpriced;
  const serving = [...catalog.groups.values()].filter((group) => groupServes(group, model.name));
  // One figure for the token bucket, for any payer; settlement corrects it.
  const most = inputOf(facts, model, Math.max(0, ...serving.map((group) => group.addedInputBytes)));
  const asked = facts.limit?.value ?? model.defaultOutputTokens;
  const outputLimit = Math.max(Math.min(asked, model.maxOutputTokens), leastSent(model, facts.protocol));
  const terms: Terms = {
    model,
    client: facts.protocol,
    ...most,
    hasFiles: facts.media.some(({ kind }) => kind === "file"),
    outputLimit,
    thinkingBeside: thinkingBeside(facts, outputLimit, model),
    choices: facts.choices,
    tier: facts.serviceTier,
    tiers: tiersOf(facts, model),
    unpricedTools: unpricedTools(facts, model.price),
    ...extrasOf(facts, model.price),
    plans: model.plans,
  };
  return { terms, groups: serving.map((group) => offeredTo(group, facts, terms)) };
}

/**
 * A budget above the limit is for a server that counts thinking beside it (Model Studio's `max_tokens` is for the answer
 * alone). A stream without a limit needs no more: its hold grows.
 */
function thinkingBeside({ thinkingBudget, limit, stream }: Envelope, outputLimit: number, model: Model): number {
  if (limit === undefined && stream) return 0;
  if (limit?.implied || thinkingBudget <= outputLimit) return 0;
  return Math.min(thinkingBudget, model.maxOutputTokens);
}

/** Translations raise a limit to the least that the upstream's protocol takes, so that is held for. */
function leastSent(model: Model, client: Protocol): number {
  const translated = model.routes.filter((route) => route.protocol !== client);
  return Math.max(0, ...translated.map((route) => PROTOCOLS[route.protocol].limitFloor));
}

function tiersOf({ serviceTier, protocol }: Envelope, { price, routes }: Model): readonly (string | undefined)[] {
  if (serviceTier === undefined || routes.every((route) => route.protocol === protocol)) return [serviceTier];
  return [undefined, ...[...price.tiers.keys()].filter((name) => isPartOfTier(name, serviceTier))];
}

/** The input with what the operator's rules may add to it: the model's and its routes', and `addedBytes` of a group's. */
function inputOf(
  facts: Envelope,
  model: Model,
  addedBytes: number,
): { readonly inputTokens: number; readonly inputEstimate: number } {
  const { inputBytesPerToken, contextTokens } = model;
  const added = model.addedInputBytes + addedBytes;
  // What a server reads beside the body may be its whole context, as a file of unknown size may.
  const stored = facts.readsStored ? contextTokens : 0;
  const tokensOf = (text: number, media: number) => Math.min(contextTokens, text + media) * (facts.compacts ? 2 : 1);
  const text = Math.ceil((facts.textBytes + added) / inputBytesPerToken);
  return {
    inputTokens: tokensOf(
      Math.max(text, Math.ceil(denseTokens(facts) + added / inputBytesPerToken)),
      sumOf(facts.media, (piece) => heldTokens(piece, model)) + stored,
    ),
    inputEstimate: tokensOf(
      Math.ceil((facts.textBytes + added) / ESTIMATE_BYTES_PER_TOKEN),
      sumOf(facts.media, (piece) => likelyTokens(piece, model)),
    ),
  };
}

/** A sample counts where it shows a text that is far denser than prose and code are. */
function denseTokens({ textBytes, textTokens }: Envelope): number {
  return textTokens > textBytes * DENSE_TOKENS_PER_BYTE ? textTokens : 0;
}

/** The most that the input can be, estimates aside: a token a byte, or the whole context where anything is no text. */
function dearestInput(facts: Envelope, model: Model, addedBytes: number): number {
  const bytes = facts.textBytes + model.addedInputBytes + addedBytes;
  const tokens =
    facts.media.length > 0 || facts.readsStored ? model.contextTokens : Math.min(model.contextTokens, bytes);
  return tokens * (facts.compacts ? 2 : 1);
}

function sumOf(pieces: readonly MediaPiece[], tokensOf: (piece: MediaPiece) => number): number {
  let sum = 0;
  for (const piece of pieces) sum += tokensOf(piece);
  return sum;
}

/** The most that an image or a file costs; what hides its size is held at the dearest that makes sense. */
function heldTokens({ kind, tokens }: MediaPiece, { mediaTokens, contextTokens }: MediaModel): number {
  const { image, imageMax, file, fileMax } = mediaTokens;
  if (kind === "image") return Math.min(Math.max(image, tokens ?? IMAGE_UNKNOWN_TOKENS), imageMax ?? contextTokens);
  return Math.min(Math.max(file, tokens ?? contextTokens), fileMax ?? contextTokens);
}

/** What it costs as a rule, for a bill when nobody counted: a hold covers twice what files mostly come to. */
function likelyTokens(piece: MediaPiece, model: MediaModel): number {
  const { image, file } = model.mediaTokens;
  const figure = piece.kind === "image" ? image : file;
  const likely = piece.tokens === undefined ? figure : piece.kind === "image" ? piece.tokens : piece.tokens / 2;
  return Math.min(heldTokens(piece, model), Math.ceil(likely));
}

type MediaModel = Pick<Model, "mediaTokens" | "contextTokens">;

/** A member that asks for an extra is a hosted tool, whose calls the server counts, unless it has a price per request. */
function extrasOf({ hostedTools, options }: Envelope, { tools, extras }: Price): Pick<Terms, "tools" | "options"> {
  const isExtra = (option: string) => extras?.has(option) === true;
  const switched = options.filter((option) => tools.has(option) && !isExtra(option));
  const named = hostedTools.map(toolPriceName).filter((name) => tools.has(name));
  return { tools: [...new Set([...named, ...switched])], options: options.filter(isExtra) };
}

/** Where every way to a model is a translation that leaves extras out, they cost nothing: convert has the word. */
function buysExtras(route: Route, client: Protocol): boolean {
  return route.protocol === client || route.capabilities.openaiNative;
}

function unpricedTools({ hostedTools }: Envelope, { tools }: Price): readonly string[] {
  return hostedTools.filter((type) => !tools.has(toolPriceName(type)));
}

/** What a person can do whose client asks for a tool by itself (docs/clients.md). */
const REMEDY_TOOLS =
  'Remove the tool, or switch it off in the client: web_search = "disabled" in Codex, WebSearch under permissions.deny in Claude Code.';

/**
 * A hosted tool without a price that cannot be left out: it is demanded, or no other is offered, so that the answer would be
 * another one without it.
 */
function neededTool(facts: Envelope, price: Price): string | undefined {
  const unpriced = unpricedTools(facts, price);
  if (!facts.hasOwnTools && unpriced.length === facts.hostedTools.length) return unpriced[0];
  const demanded = new Set(facts.demandedTools.map(toolPriceName));
  return unpriced.find((type) => demanded.has(toolPriceName(type)));
}

function findUnpriced(facts: Envelope, model: Model): Refusal | undefined {
  const { price, routes } = model;
  const refuse = (param: string, what: string, remedy?: string) =>
    refusal("unsupported_parameter", {
      model: facts.model,
      param,
      detail: `${what} is not offered for this model.`,
      remedy,
    });
  if (facts.serviceTier !== undefined && !price.tiers.has(facts.serviceTier)) {
    return refuse(facts.tierParam ?? "service_tier", `The tier "${facts.serviceTier}"`);
  }
  if (!routes.some((route) => buysExtras(route, facts.protocol))) return undefined;
  const option = facts.options.find((name) => !price.tools.has(name));
  if (option !== undefined) return refuse(option, `What "${option}" asks for`);
  const tool = neededTool(facts, price);
  return tool === undefined ? undefined : refuse("tools", `The hosted tool "${tool}"`, REMEDY_TOOLS);
}

function offeredTo(group: Group, facts: Envelope, terms: Terms): OfferedTerms {
  const { model, outputLimit } = terms;
  const { multiplier, limits, addedInputBytes } = group;
  const { inputTokens, inputEstimate } = inputOf(facts, model, addedInputBytes);
  const dearest = Math.max(dearestInput(facts, model, addedInputBytes), inputTokens);
  return {
    group: group.name,
    kind: group.kind,
    ...worstCase(terms, multiplier, inputTokens, outputLimit),
    dear: worstCase(terms, multiplier, dearest, Math.max(outputLimit, model.maxOutputTokens)),
    requestsPerMinute: limits.requestsPerMinute,
    tokensPerMinute: limits.tokensPerMinute,
    concurrency: limits.concurrency,
    perKey: limits.perKey,
    fallback: group.fallback === "money",
    inputEstimate,
  };
}

/** @param outputMost output tokens of each choice that are held. */
function worstCase(terms: Terms, multiplier: Multiplier, inputTokens: number, outputMost: number): WorstCase {
  const ceilings = terms.tiers.map((tier) => ceilingOf(terms.model.price, multiplier, inputTokens, tier));
  const toolsHold = toolsHoldOf(terms, multiplier);
  const held = { ceilings, toolsHold };
  const holdMin = holdOf(terms, held, Math.min(terms.outputLimit, USEFUL_OUTPUT_MIN));
  return { inputTokens, ceilings, toolsHold, holdFull: holdOf(terms, held, outputMost), holdMin };
}

function toolsHoldOf(terms: Terms, multiplier: Multiplier): bigint {
  const { tools: prices } = terms.model.price;
  const held = BigInt(terms.model.toolCalls.held);
  let sum = 0n;
  for (const tool of terms.tools) sum += (prices.get(tool) ?? 0n) * held;
  for (const option of terms.options) sum += prices.get(option) ?? 0n;
  return (sum * multiplier + 999_999n) / 1_000_000n;
}

type Ceilings = Pick<WorstCase, "ceilings" | "toolsHold">;

/** The most that a request costs with so many output tokens of each choice. */
export function holdOf(
  { choices, thinkingBeside }: Terms,
  { ceilings, toolsHold }: Ceilings,
  outputPerChoice: number,
): NanoUsd {
  const output = (outputPerChoice + thinkingBeside) * choices;
  let most = 0n;
  for (const ceiling of ceilings) {
    const amount = holdFor(ceiling, output);
    if (amount > most) most = amount;
  }
  // No balance can cover more than the maximum, and the store takes nothing above it.
  return leastNano(nanoUsd(most + toolsHold), NANO_USD_MAX);
}

/**
 * The output tokens of each choice that so much money pays for (the clamp of promise 1).
 * @param funds what admission set aside, which is at least the group's holdMin, or that and what is free beside it.
 */
export function affordableLimit(
  { choices, thinkingBeside }: Terms,
  { ceilings, toolsHold }: Ceilings,
  funds: NanoUsd,
): number {
  const left = nanoUsd(funds - toolsHold);
  const afforded = ceilings.map((ceiling) => affordableOutput(ceiling, left));
  return Math.max(0, Math.floor(Math.min(...afforded) / choices) - thinkingBeside);
}
