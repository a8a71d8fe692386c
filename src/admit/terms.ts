/**
 * What a request would cost at most in every group that could pay: takes the envelope, gives integers. Never reads
 * content.
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
import { type InputTokens, inputOf, worstCaseInput } from "./input.ts";
import { type CostClass, servingOf } from "./serving.ts";

/** The request measured against the catalog. In a permit, the input is that of the paying group. */
export interface Terms {
  readonly model: Model;
  /** The protocol that the client speaks. */
  readonly client: Protocol;
  /**
   * Maximum input tokens, as the token bucket counts them. Includes the most text that the rules of any group add, so
   * it may exceed what the key's own group holds (OfferedTerms.inputTokens).
   */
  readonly inputTokens: number;
  /** Input tokens at 4 bytes each, for a bill if the upstream counts nothing (ARCHITECTURE.md promise 3). */
  readonly inputEstimate: number;
  /** Whether it has a file, whose tokens only the upstream knows. */
  readonly hasFiles: boolean;
  /**
   * Output tokens per choice that the hold covers: the client's limit capped at the model's maximum, or the default.
   */
  readonly outputLimit: number;
  /** Thinking tokens per choice that may come in addition to the limit. */
  readonly thinkingBeside: number;
  /** Tokens of each choice's prediction. Rejected ones are billed in addition to the output. */
  readonly predictedTokens: number;
  readonly choices: number;
  readonly tier: string | undefined;
  /** Every tier at which it may be charged: a translation may leave out the member that asks for this one. */
  readonly tiers: readonly (string | undefined)[];
  /** Types of the offered hosted tools that have no price: no upstream gets them. */
  readonly unpricedTools: readonly string[];
  /** Price names of the requested hosted tools. */
  readonly tools: readonly string[];
  /** Price names of the requested extras; each is charged once. */
  readonly options: readonly string[];
  readonly plans: AdmitAsk["plans"];
}

/** A measured request, and its cost in each group that serves its model. */
export interface Quote {
  readonly terms: Terms;
  readonly groups: readonly OfferedTerms[];
}

/** What the request would cost in one group. */
export interface OfferedTerms extends GroupTerms, GroupCost {
  readonly worstCase: CostBound;
}

/** The most that the request can cost in one group with this input, by its output. */
interface CostBound {
  readonly inputTokens: number;
  /** Cost of the tokens alone; one entry for each tier at which the request may be charged. */
  readonly ceilings: readonly Ceiling[];
  /** The cost of its hosted tools and its extras. */
  readonly toolsHold: bigint;
  readonly holdFull: NanoUsd;
  readonly holdMin: NanoUsd;
}

/** Minimum output that is worth paying the input for (promise 1). */
const USEFUL_OUTPUT_MIN = 16;

/** Measures a request, or refuses what has no price (promise 14). */
export function measure(facts: Envelope, model: Model, catalog: Catalog): Quote | Refusal {
  const unpriced = findUnpriced(facts, model);
  if (unpriced) return unpriced;
  const { groups, classes, classOf, addedInputBytesMost } = servingOf(catalog, model);
  // One figure for the token bucket, whichever group pays; settlement corrects it.
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
 * A budget above the limit is for a server that counts thinking in addition to it (Model Studio's `max_tokens` limits
 * only the answer). A stream without a limit needs no more, because its hold grows.
 */
function thinkingBeside({ thinkingBudget, limit, stream }: Envelope, outputLimit: number, model: Model): number {
  if (limit === undefined && stream) return 0;
  if (limit?.implied || thinkingBudget <= outputLimit) return 0;
  return Math.min(thinkingBudget, model.maxOutputTokens);
}

/**
 * Held like the rest of the body: at the operator's figure, or at the density of the body's sample if that is higher.
 */
function predictedTokens({ predictedBytes = 0, textBytes, textTokens }: Envelope, model: Model): number {
  if (predictedBytes === 0) return 0;
  const sampled = textBytes > 0 ? textTokens / textBytes : 0;
  return Math.ceil(predictedBytes * Math.max(1 / model.inputBytesPerToken, sampled));
}

/** Translations raise a limit to the minimum of the upstream's protocol, so the hold covers that. */
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

/** The cost of the request in every group of one class, whose rules may add text that only its own keys pay for. */
interface GroupCost extends CostBound {
  /** Input tokens that the hold covers; more than `inputTokens` if the input is probably larger than the context. */
  readonly heldTokens: number;
  readonly inputEstimate: number;
  /** The same without estimates, for an account whose charges repeatedly exceeded its holds. */
  readonly worstCase: CostBound;
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
  const { ceilings, holdFull, holdMin } = costBound(terms, { multiplier, toolsHold }, heldTokens, outputLimit);
  // The maximum number of calls that is charged, with the result of each read as input.
  const worstCaseTools = { multiplier, toolsHold: toolsHoldOf(terms, multiplier, max) };
  const worstCaseTokens = Math.max(worstCaseInput(facts, model, addedInputBytes, terms.tools.length * max), heldTokens);
  const worstCase = costBound(terms, worstCaseTools, worstCaseTokens, Math.max(outputLimit, model.maxOutputTokens));
  return { inputTokens, heldTokens, inputEstimate, ceilings, toolsHold, holdFull, holdMin, worstCase };
}

/** Member by member, because a spread takes 0.15 us more. */
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
    worstCase: cost.worstCase,
    requestsPerMinute: limits.requestsPerMinute,
    tokensPerMinute: limits.tokensPerMinute,
    concurrency: limits.concurrency,
    perKey: limits.perKey,
    fallback: fallback === "money",
    inputEstimate: cost.inputEstimate,
  };
}

/** @param outputMost output tokens per choice that the hold covers. */
function costBound(
  terms: Terms,
  { multiplier, toolsHold }: { readonly multiplier: Multiplier; readonly toolsHold: bigint },
  inputTokens: number,
  outputMost: number,
): CostBound {
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

/** Output tokens per choice that may come in addition to its limit. */
export function besideLimit({
  thinkingBeside,
  predictedTokens,
}: Pick<Terms, "thinkingBeside" | "predictedTokens">): number {
  return thinkingBeside + predictedTokens;
}

type Ceilings = Pick<CostBound, "ceilings" | "toolsHold">;

/** The most that a request costs with this many output tokens per choice. */
function holdOf(terms: Terms, { ceilings, toolsHold }: Ceilings, outputPerChoice: number): NanoUsd {
  const output = (outputPerChoice + besideLimit(terms)) * terms.choices;
  let most = holdFor(ceilings[0] as Ceiling, output);
  for (let i = 1; i < ceilings.length; i++) {
    const amount = holdFor(ceilings[i] as Ceiling, output);
    if (amount > most) most = amount;
  }
  // No balance can cover more than the maximum, and the store accepts nothing above it.
  return leastNano(toolsHold === 0n ? most : nanoUsd(most + toolsHold), NANO_USD_MAX);
}

/**
 * The output tokens per choice that this amount pays for (the clamp of promise 1).
 * @param funds the hold, which is at least the group's holdMin; or the hold plus the free funds.
 */
export function affordableLimit(terms: Terms, { ceilings, toolsHold }: Ceilings, funds: NanoUsd): number {
  const left = nanoUsd(funds - toolsHold);
  const afforded = ceilings.map((ceiling) => affordableOutput(ceiling, left));
  return Math.max(0, Math.floor(Math.min(...afforded) / terms.choices) - besideLimit(terms));
}

/* From what is held to what may be written. */

/** How much an admitted request may write. */
export interface PermittedOutput extends Pick<ChargeTerms, "outputMost"> {
  /** The output limit to send upstream; undefined: keep the client's own. */
  readonly outputLimit: number | undefined;
  /** Thinking tokens per choice that may be requested; undefined: the body has no limits. */
  readonly thinkingMost: number | undefined;
  /** A stream whose client set no output limit, and for which funds have not set one either. */
  readonly openEnded: boolean;
  /** How its hold may grow; undefined if nothing is held, or if the hold covers all that the request can cost. */
  readonly growth: Growth | undefined;
  /**
   * `field=value` if the client's limit or its thinking budget was lowered, to what the model can produce or to what
   * the funds cover. If both were lowered, they are joined by a comma.
   */
  readonly clamped: string | undefined;
}

/** How the hold of a stream may grow whose client set no output limit (ARCHITECTURE.md promise 1). */
export interface Growth {
  /** Output tokens per choice that the first hold covers and that each step adds. */
  readonly stepTokens: number;
  /**
   * Output tokens per choice that model and context allow: no hold needs to cover more. The upstream is asked for fewer
   * if the funds at admission do not cover them (`Permit.outputMost`).
   */
  readonly outputTokensMax: number;
  /** The hold for this many output tokens per choice. */
  holdFor(outputTokens: number): NanoUsd;
}

/** How much an admitted request may write: what client and model allow, as far as the funds cover it. */
export function outputOf(
  protocol: Protocol,
  facts: Envelope,
  terms: Terms,
  offered: OfferedTerms,
  answer: Admitted,
): PermittedOutput {
  const worst = answer.worstCase ? offered.worstCase : offered;
  const partial = !answer.unmetered && answer.hold < worst.holdFull;
  const affordable = partial
    ? Math.min(terms.outputLimit, affordableLimit(terms, worst, answer.hold))
    : terms.outputLimit;
  const short = affordable < terms.outputLimit;
  const openEnded = facts.stream && facts.limit === undefined && !short;
  // If the whole worst case is held, the hold need not grow, and its input does not show how much of the context is
  // left.
  const whole = answer.worstCase === true && !partial;
  const { inputTokens } = whole ? offered : worst;
  const { model, outputLimit } = terms;
  const room = openEnded
    ? openLimit({ model, outputLimit, inputTokens, inputEstimate: offered.inputEstimate })
    : affordable;
  const limitMost = openEnded ? Math.min(room, fundedLimit(terms, worst, answer)) : affordable;
  // If no member of the body limits the output, it can be lowered only when funds are short.
  const own = facts.limit?.implied ? affordable : facts.limit?.value;
  const lowered = short || limitMost < room || (own !== undefined && affordable < own);
  // A budget that is not held in addition to the limit must fit into it.
  const thinkingMost = facts.limit?.implied ? undefined : terms.thinkingBeside || limitMost;
  const lessThinking = thinkingMost !== undefined && facts.thinkingBudget > thinkingMost;
  const field = facts.limit?.field ?? (PROTOCOLS[protocol].limitFields[0] as string);
  const clamped: string[] = [];
  if (lowered) clamped.push(`${field}=${limitMost}`);
  if (lessThinking) clamped.push(`${facts.budgetParam}=${thinkingMost}`);
  return {
    // The upstream gets the limit that the hold covers, also if the client set none or one above the model's maximum.
    outputLimit: lowered || facts.limit === undefined ? limitMost : undefined,
    outputMost: limitMost + besideLimit(terms),
    thinkingMost,
    openEnded,
    growth: openEnded && !answer.unmetered && !whole ? growthOf(terms, worst, room) : undefined,
    clamped: clamped.length > 0 ? clamped.join(", ") : undefined,
  };
}

type OpenTerms = Pick<Terms, "model" | "inputTokens" | "inputEstimate" | "outputLimit">;

/** If estimates say that a prompt fills its context, the answer still gets this part. */
const CONTEXT_PER_ROOM = 32;

/**
 * The output limit that an upstream gets if the client set none: all that the model can produce and the context has
 * room for, because servers refuse a sum above the context. The input counts at its upper bound. If that leaves less
 * than the default, half of the likely rest is requested, up to the default.
 */
export function openLimit({ model, inputTokens, inputEstimate, outputLimit }: OpenTerms): number {
  const { contextTokens, maxOutputTokens } = model;
  const likely = Math.max((contextTokens - inputEstimate) / 2, contextTokens / CONTEXT_PER_ROOM, 1);
  const room = Math.max(contextTokens - inputTokens, Math.min(outputLimit, Math.floor(likely)));
  return Math.min(maxOutputTokens, room);
}

/**
 * What all free funds of the payer can pay for: an upstream that is asked for more may think beyond it unseen. Other
 * requests may release funds, or use them first; the hold is extended as far as there are funds when it is needed.
 */
function fundedLimit(terms: Terms, worst: CostBound, { unmetered, hold, free }: Admitted): number {
  if (unmetered || free === undefined) return Number.MAX_SAFE_INTEGER;
  return Math.max(terms.outputLimit, affordableLimit(terms, worst, nanoUsd(hold + free)));
}

/** How far a hold may grow; undefined if it covers all possible output from the beginning. */
function growthOf(terms: Terms, worst: CostBound, outputTokensMax: number): Growth | undefined {
  const { outputLimit: stepTokens } = terms;
  const holdFor = (outputTokens: number) => holdOf(terms, worst, Math.min(outputTokens, outputTokensMax));
  return holdFor(stepTokens) < holdFor(outputTokensMax) ? { stepTokens, outputTokensMax, holdFor } : undefined;
}
