/** What admission gives to the rest of the path: who pays, how much at most, and at which prices. */
import type { Admitted, LimitStates } from "../store/admission.ts";
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Catalog, Group } from "../values/catalog.ts";
import type { Idempotency, KeptRequest } from "../values/idempotency.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { leastNano, type NanoUsd, nanoUsd } from "../values/money.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import type { RequestId } from "../values/request-id.ts";
import { affordableLimit, holdOf, type OfferedTerms, type Quote, type Terms, type WorstCase } from "./terms.ts";

/**
 * Everything about the money is pinned here: a reload in the middle of a request changes nothing (docs/failure-model.md
 * row G1).
 */
export interface Permit extends ChargeTerms {
  readonly accountId: string;
  /** With the input as the rules of the group that pays make it. */
  readonly terms: Terms;
  readonly heldDear: boolean;
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
  readonly limits: LimitStates;
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

/** The request that is admitted. */
interface AdmittedRequest {
  readonly requestId: RequestId;
  readonly protocol: Protocol;
  readonly key: Pick<WellFormedKey, "tag">;
  readonly holdTtlMs: number;
  readonly idempotency: Idempotency | undefined;
}

/** The permit for what the store has admitted. */
export function permitOf(
  { requestId, protocol, key, holdTtlMs, idempotency }: AdmittedRequest,
  facts: Envelope,
  { terms, groups }: Quote,
  answer: Admitted,
  catalog: Catalog,
): Permit {
  const group = catalog.groups.get(answer.group) as Group;
  const offered = groups.find((one) => one.group === answer.group) as OfferedTerms;
  const { inputTokens, inputEstimate } = offered;
  return {
    requestId,
    tag: key.tag,
    accountId: answer.accountId,
    keyId: answer.keyId,
    group,
    model: terms.model,
    terms: { ...terms, inputTokens, inputEstimate },
    tokensTaken: terms.inputTokens,
    hold: answer.hold,
    heldDear: answer.dear === true,
    entitlement: answer.entitlement,
    counted: answer.counted,
    unmetered: answer.unmetered,
    storeTimeMs: answer.storeTimeMs,
    catalogVersion: catalog.version,
    ...outputOf(protocol, facts, terms, offered, answer),
    limits: answer.limits,
    idempotency: idempotency && keptRequest(idempotency, answer.storeTimeMs, holdTtlMs),
  };
}

type PermittedOutput = Pick<Permit, "outputLimit" | "outputMost" | "thinkingMost" | "openEnded" | "growth" | "clamped">;

/** How much it may write: what its client and its model allow, as far as funds reach. */
function outputOf(
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
  const clamped = [
    ...(lowered ? [`${field}=${limitMost}`] : []),
    ...(lessThinking ? [`${facts.budgetParam}=${thinkingMost}`] : []),
  ];
  return {
    // What is sent is what is held: also where the client named no limit, or one above what the model can give.
    outputLimit: lowered || facts.limit === undefined ? limitMost : undefined,
    outputMost: limitMost + terms.thinkingBeside,
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
  const most = holdOf(terms, worst, outputTokensMax);
  if (holdOf(terms, worst, stepTokens) >= most) return undefined;
  const holdFor = (outputTokens: number) => leastNano(holdOf(terms, worst, outputTokens), most);
  return { stepTokens, outputTokensMax, holdFor };
}

/** The key is remembered from admission on, and at the least for as long as the request may run. */
function keptRequest(
  { key, fingerprint, streamed, keepMs }: Idempotency,
  storeTimeMs: number,
  holdTtlMs: number,
): KeptRequest {
  return { key, fingerprint, streamed, untilMs: storeTimeMs + Math.max(keepMs, holdTtlMs) };
}
