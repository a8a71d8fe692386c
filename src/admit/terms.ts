/**
 * What a request would cost at most, in the terms of every group that could pay: the envelope in, integers out.
 * Never reads content.
 */
import type { AdmitAsk, Admitted, GroupTerms } from "../store/admission.ts";
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Catalog, Group, Model } from "../values/catalog.ts";
import type { Refusal } from "../values/errors.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { isPartOfTier } from "../values/members/tier.ts";
import { leastNano, NANO_USD_MAX, type NanoUsd, nanoUsd } from "../values/money.ts";
import { affordableOutput, type Ceiling, ceilingOf, holdFor, type Multiplier } from "../values/price.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { extrasOf, findUnpriced, unpricedTools } from "./extras.ts";
import { dearestInput, type InputTokens, inputOf } from "./input.ts";
import { type CostClass, servingOf } from "./serving.ts";

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
  /** Tokens of each choice's prediction: as many as are rejected of it are billed beside what is written. */
  readonly predictedTokens: number;
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
  /** Input tokens that are held for; more than `inputTokens` where the input is larger than the context by all appearances. */
  readonly heldTokens: number;
  readonly inputEstimate: number;
  readonly dear: WorstCase;
}

/** What the request costs at most in one group with so much input, by its output. */
interface WorstCase {
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

/** Measures a request, or refuses what has no price (promise 14). */
export function measure(facts: Envelope, model: Model, catalog: Catalog): Quote | Refusal {
  const unpriced = findUnpriced(facts, model);
  if (unpriced) return unpriced;
  const { groups, classes, classOf, addedInputBytesMost } = servingOf(catalog, model);
  // One figure for the token bucket, for any payer; settlement corrects it.
  const most = inputOf(facts, model, addedInputBytesMost);
  const asked = facts.limit?.value ?? model.defaultOutputTokens;
  const outputLimit = Math.max(Math.min(asked, model.maxOutputTokens), leastSent(model, facts.protocol));
  const { tools, options } = extrasOf(facts, model.price);
  const terms: Terms = {
    model,
    client: facts.protocol,
    inputTokens: most.inputTokens,
    inputEstimate: most.inputEstimate,
    hasFiles: facts.media.some(({ kind }) => kind === "file"),
    outputLimit,
    thinkingBeside: thinkingBeside(facts, outputLimit, model),
    predictedTokens: Math.min(predictedTokens(facts, model), model.maxOutputTokens),
    choices: facts.choices,
    tier: facts.serviceTier,
    tiers: tiersOf(facts, model),
    unpricedTools: unpricedTools(facts, model.price),
    tools,
    options,
    plans: model.plans,
  };
  const costs = classes.map((one) => {
    const input = one.addedInputBytes === addedInputBytesMost ? most : inputOf(facts, model, one.addedInputBytes);
    return costIn(one, facts, terms, input);
  });
  return { terms, groups: groups.map((group, at) => offeredTo(group, costs[classOf[at] as number] as GroupCost)) };
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

/** Held as the rest of the body is: at the operator's figure, or at the body's sample where that is dense. */
function predictedTokens({ predictedBytes = 0, textBytes, textTokens }: Envelope, model: Model): number {
  if (predictedBytes === 0) return 0;
  const sampled = textBytes > 0 ? textTokens / textBytes : 0;
  return Math.ceil(predictedBytes * Math.max(1 / model.inputBytesPerToken, sampled));
}

/** Translations raise a limit to the least that the upstream's protocol takes, so that is held for. */
function leastSent(model: Model, client: Protocol): number {
  let least = 0;
  for (const { protocol } of model.routes) {
    if (protocol !== client) least = Math.max(least, PROTOCOLS[protocol].limitFloor);
  }
  return least;
}

const STANDARD_TIER: readonly (string | undefined)[] = [undefined];

function tiersOf({ serviceTier, protocol }: Envelope, { price, routes }: Model): readonly (string | undefined)[] {
  if (serviceTier === undefined) return STANDARD_TIER;
  if (routes.every((route) => route.protocol === protocol)) return [serviceTier];
  return [undefined, ...[...price.tiers.keys()].filter((name) => isPartOfTier(name, serviceTier))];
}

/** What the request costs in every group of one class. */
interface GroupCost extends WorstCase {
  readonly heldTokens: number;
  readonly inputEstimate: number;
  readonly dear: WorstCase;
}

function costIn(
  { multiplier, addedInputBytes }: CostClass,
  facts: Envelope,
  terms: Terms,
  { inputTokens, heldTokens, inputEstimate }: InputTokens,
): GroupCost {
  const { model, outputLimit } = terms;
  const { held, max } = model.toolCalls;
  const toolsHold = toolsHoldOf(terms, multiplier, held);
  const { ceilings, holdFull, holdMin } = worstCase(terms, { multiplier, toolsHold }, heldTokens, outputLimit);
  // As many calls as are charged at most, each of them read.
  const dearTools = { multiplier, toolsHold: toolsHoldOf(terms, multiplier, max) };
  const dearest = Math.max(dearestInput(facts, model, addedInputBytes, terms.tools.length * max), heldTokens);
  const dear = worstCase(terms, dearTools, dearest, Math.max(outputLimit, model.maxOutputTokens));
  return { inputTokens, heldTokens, inputEstimate, ceilings, toolsHold, holdFull, holdMin, dear };
}

/** Member by member, since a spread takes 0.15 us more. */
function offeredTo({ name, kind, limits, fallback }: Group, cost: GroupCost): OfferedTerms {
  return {
    group: name,
    kind,
    inputTokens: cost.inputTokens,
    heldTokens: cost.heldTokens,
    ceilings: cost.ceilings,
    toolsHold: cost.toolsHold,
    holdFull: cost.holdFull,
    holdMin: cost.holdMin,
    dear: cost.dear,
    requestsPerMinute: limits.requestsPerMinute,
    tokensPerMinute: limits.tokensPerMinute,
    concurrency: limits.concurrency,
    perKey: limits.perKey,
    fallback: fallback === "money",
    inputEstimate: cost.inputEstimate,
  };
}

/** @param outputMost output tokens of each choice that are held. */
function worstCase(
  terms: Terms,
  { multiplier, toolsHold }: { readonly multiplier: Multiplier; readonly toolsHold: bigint },
  inputTokens: number,
  outputMost: number,
): WorstCase {
  const ceilings = terms.tiers.map((tier) => ceilingOf(terms.model.price, multiplier, inputTokens, tier));
  const held = { ceilings, toolsHold };
  const holdMin = holdOf(terms, held, Math.min(terms.outputLimit, USEFUL_OUTPUT_MIN));
  return { inputTokens, ceilings, toolsHold, holdFull: holdOf(terms, held, outputMost), holdMin };
}

/** @param calls of each hosted tool. */
function toolsHoldOf(terms: Terms, multiplier: Multiplier, calls: number): bigint {
  if (terms.tools.length === 0 && terms.options.length === 0) return 0n;
  const { tools: prices } = terms.model.price;
  let sum = 0n;
  for (const tool of terms.tools) sum += (prices.get(tool) ?? 0n) * BigInt(calls);
  for (const option of terms.options) sum += prices.get(option) ?? 0n;
  return (sum * multiplier + 999_999n) / 1_000_000n;
}

/** Output tokens of each choice that may come beside its limit. */
export function besideLimit({
  thinkingBeside,
  predictedTokens,
}: Pick<Terms, "thinkingBeside" | "predictedTokens">): number {
  return thinkingBeside + predictedTokens;
}

type Ceilings = Pick<WorstCase, "ceilings" | "toolsHold">;

/** The most that a request costs with so many output tokens of each choice. */
function holdOf(terms: Terms, { ceilings, toolsHold }: Ceilings, outputPerChoice: number): NanoUsd {
  const output = (outputPerChoice + besideLimit(terms)) * terms.choices;
  let most = holdFor(ceilings[0] as Ceiling, output);
  for (let i = 1; i < ceilings.length; i++) {
    const amount = holdFor(ceilings[i] as Ceiling, output);
    if (amount > most) most = amount;
  }
  // No balance can cover more than the maximum, and the store takes nothing above it.
  return leastNano(toolsHold === 0n ? most : nanoUsd(most + toolsHold), NANO_USD_MAX);
}

/**
 * The output tokens of each choice that so much money pays for (the clamp of promise 1).
 * @param funds what admission set aside, which is at least the group's holdMin, or that and what is free beside it.
 */
export function affordableLimit(terms: Terms, { ceilings, toolsHold }: Ceilings, funds: NanoUsd): number {
  const left = nanoUsd(funds - toolsHold);
  const afforded = ceilings.map((ceiling) => affordableOutput(ceiling, left));
  return Math.max(0, Math.floor(Math.min(...afforded) / terms.choices) - besideLimit(terms));
}

/* From what is held to what may be written. */

/** How much an admitted request may write. */
export interface PermittedOutput extends Pick<ChargeTerms, "outputMost"> {
  /** The output limit to send upstream; undefined: the client's own is kept. */
  readonly outputLimit: number | undefined;
  /** Tokens of thinking of each choice that may be asked for; undefined: the body has no limits. */
  readonly thinkingMost: number | undefined;
  /** A stream whose client named no output limit, and for which funds have not set one. */
  readonly openEnded: boolean;
  /** How its hold may grow; undefined where nothing is held, or all that the request can cost. */
  readonly growth: Growth | undefined;
  /**
   * `field=value` when the client's limit or its thinking budget was lowered: to what the model can give, or to what funds
   * cover. Both are joined by a comma.
   */
  readonly clamped: string | undefined;
}

/** How the hold of a stream may grow whose client named no output limit (ARCHITECTURE.md promise 1). */
export interface Growth {
  /** Output tokens of each choice that the first hold covers, and each step adds. */
  readonly stepTokens: number;
  /**
   * Output tokens of each choice that model and context allow: no hold need cover more. The upstream is asked for fewer where
   * funds do not reach so far at admission (`Permit.outputMost`).
   */
  readonly outputTokensMax: number;
  /** What is held for so many output tokens of each choice. */
  holdFor(outputTokens: number): NanoUsd;
}

/** How much an admitted request may write: what its client and its model allow, as far as funds reach. */
export function outputOf(
  protocol: Protocol,
  facts: Envelope,
  terms: Terms,
  offered: OfferedTerms,
  answer: Admitted,
): PermittedOutput {
  const worst = answer.dear ? offered.dear : offered;
  const partial = !answer.unmetered && answer.hold < worst.holdFull;
  const affordable = partial
    ? Math.min(terms.outputLimit, affordableLimit(terms, worst, answer.hold))
    : terms.outputLimit;
  const short = affordable < terms.outputLimit;
  const openEnded = facts.stream && facts.limit === undefined && !short;
  // Where the dearest is held whole, neither need the hold grow nor does its input say what room the context leaves.
  const whole = answer.dear === true && !partial;
  const { inputTokens } = whole ? offered : worst;
  const { model, outputLimit } = terms;
  const room = openEnded
    ? openLimit({ model, outputLimit, inputTokens, inputEstimate: offered.inputEstimate })
    : affordable;
  const limitMost = openEnded ? Math.min(room, fundedLimit(terms, worst, answer)) : affordable;
  // What no member of the body limits cannot be lowered, but where funds are short.
  const own = facts.limit?.implied ? affordable : facts.limit?.value;
  const lowered = short || limitMost < room || (own !== undefined && affordable < own);
  // A budget that is not held beside the limit must fit in it.
  const thinkingMost = facts.limit?.implied ? undefined : terms.thinkingBeside || limitMost;
  const lessThinking = thinkingMost !== undefined && facts.thinkingBudget > thinkingMost;
  const field = facts.limit?.field ?? (PROTOCOLS[protocol].limitFields[0] as string);
  const clamped: string[] = [];
  if (lowered) clamped.push(`${field}=${limitMost}`);
  if (lessThinking) clamped.push(`${facts.budgetParam}=${thinkingMost}`);
  return {
    // What is sent is what is held: also where the client named no limit, or one above what the model can give.
    outputLimit: lowered || facts.limit === undefined ? limitMost : undefined,
    outputMost: limitMost + besideLimit(terms),
    thinkingMost,
    openEnded,
    growth: openEnded && !answer.unmetered && !whole ? growthOf(terms, worst, room) : undefined,
    clamped: clamped.length > 0 ? clamped.join(", ") : undefined,
  };
}

type OpenTerms = Pick<Terms, "model" | "inputTokens" | "inputEstimate" | "outputLimit">;

/** If estimates say that a prompt fills its context, this part is still left to the answer. */
const CONTEXT_PER_ROOM = 32;

/**
 * The output limit that an upstream gets where the client has named none: all that the model can give and the context has
 * room for, since servers refuse a sum above the context. The input is counted at its upper bound; where that leaves less
 * than the default, half of what is likely left is asked for, up to the default.
 */
export function openLimit({ model, inputTokens, inputEstimate, outputLimit }: OpenTerms): number {
  const { contextTokens, maxOutputTokens } = model;
  const likely = Math.max((contextTokens - inputEstimate) / 2, contextTokens / CONTEXT_PER_ROOM, 1);
  const room = Math.max(contextTokens - inputTokens, Math.min(outputLimit, Math.floor(likely)));
  return Math.min(maxOutputTokens, room);
}

/**
 * What all that the payer has free can pay for: an upstream that is asked for more may think past it unseen. What runs beside
 * it may free more, or take it first; the hold is extended as far as there is something when it is needed.
 */
function fundedLimit(terms: Terms, worst: WorstCase, { unmetered, hold, free }: Admitted): number {
  if (unmetered || free === undefined) return Number.MAX_SAFE_INTEGER;
  return Math.max(terms.outputLimit, affordableLimit(terms, worst, nanoUsd(hold + free)));
}

/** How far a hold may grow, or undefined when it covers all that may come from the beginning. */
function growthOf(terms: Terms, worst: WorstCase, outputTokensMax: number): Growth | undefined {
  const { outputLimit: stepTokens } = terms;
  const holdFor = (outputTokens: number) => holdOf(terms, worst, Math.min(outputTokens, outputTokensMax));
  return holdFor(stepTokens) < holdFor(outputTokensMax) ? { stepTokens, outputTokensMax, holdFor } : undefined;
}
