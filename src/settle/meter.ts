/**
 * Computes what a request has used, attempt by attempt: the billed tokens follow from the upstream's count or from what
 * passed through the gateway (ARCHITECTURE.md promise 3).
 */
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Route } from "../values/catalog.ts";
import type { NanoUsd } from "../values/money.ts";
import {
  billTools,
  mergedCalls,
  pricedCalls,
  reachesUpstream,
  type UnpaidCalls,
  unseenCalls,
  withShownCalls,
} from "../values/tokens/tool-calls.ts";
import {
  addCounts,
  billedUsage,
  NO_USAGE,
  type ProducedCounts,
  stepInput,
  totalInput,
  type Usage,
} from "../values/tokens/usage.ts";
import type { Pace } from "./observed.ts";

/** The end of a reply that the upstream completed. */
export const COMPLETE = "complete";
/** The end of a stream whose hold and the account's funds were used up. */
export const BRAKE = "brake";
/** The outcome of an attempt, or the end of a reply, whose client disconnected. */
export const CLIENT_GONE = "client_gone";

/** What is known about a reply when its request ends. */
export interface MeasuredReply {
  /** The upstream's count, if it sent one. In a cut stream it may be a snapshot from before the end. */
  readonly usage: Usage | undefined;
  /** Whether that count is the upstream's final one. */
  readonly final: boolean;
  /** What passed through the gateway. */
  readonly produced: ProducedCounts;
  /** Total silence since the last count, without the first second of each silence. */
  readonly silentMs: number;
  /** The model that answered according to the upstream, if it differs from the one asked for. */
  readonly answeredBy?: string | undefined;
  /** Whether the upstream gave the count later, so that it says nothing about what passed through the gateway. */
  readonly countedLater?: boolean | undefined;
}

/** How a reply ended, as far as the token count depends on it. */
interface ReplyEnd {
  /** `complete`, or why nothing was delivered or the stream was cut. */
  readonly cause: string;
  /** Whether the upstream completed its reply. */
  readonly complete: boolean;
  /** Whether the gateway stopped the upstream before its count, because one of the client's stop strings matched. */
  readonly stopped?: boolean;
  /** The pace of the model that answered. Without it no output is assumed to be hidden. */
  readonly pace?: Pace | undefined;
}

/** An attempt as dispatch records it (dispatch/ask.ts, AttemptRecord). */
export interface AttemptFacts {
  readonly upstream: string;
  /** The model's name at the upstream. */
  readonly model: string;
  /** `ok`, `client_gone`, or the cause of the failure. */
  readonly outcome: string;
  readonly status: number | undefined;
  readonly bytesReceived: number;
  /** Output tokens that the upstream may have produced while nothing arrived. */
  readonly hiddenTokens?: number | undefined;
  /** Calls of offered tools, by tool name, that the upstream had time to make without showing them. */
  readonly unseenCalls?: Readonly<Record<string, number>> | undefined;
  readonly sentToUpstream: boolean;
  /** The tier that the upstream was asked for; undefined for the standard one. */
  readonly tier?: string | undefined;
  /** The upstream itself refused: such an attempt costs nothing. */
  readonly refusedByUpstream: boolean;
  /** What the upstream counted although the attempt failed. */
  readonly usage?: Usage | undefined;
  /**
   * The client may have caused the failure: an answer too large to hold, a call that the model could not write, or
   * content that the server refused after the model had read it.
   */
  readonly askedFor?: boolean | undefined;
}

/** How the request ended, as far as it matters for money. */
export interface Ending extends ReplyEnd {
  /**
   * Whether the client pays (ARCHITECTURE.md promise 3): output or a proper end with a count was handed to a socket not
   * known to be closed, or the gateway ended the stream because funds ran out.
   */
  readonly delivered: boolean;
  /** The route of the attempt that answered; undefined if none did. */
  readonly route: Route | undefined;
  /** The tier that this attempt asked for; undefined for the standard one. */
  readonly tier?: string | undefined;
  /**
   * Whether the client may have caused the failure. What was not delivered is then absorbed as if the client had
   * disconnected.
   */
  readonly askedFor?: boolean;
  readonly measured: MeasuredReply;
  /** Every attempt in order, including the one that answered. */
  readonly attempts?: readonly AttemptFacts[] | undefined;
  /**
   * What an account may cost per day by disconnecting before anything is delivered; undefined if the client did not end
   * the request, so that the allowance does not apply.
   */
  readonly leftAllowance?: NanoUsd | undefined;
}

export interface Metered {
  readonly usage: Usage;
  /** Who counted; the ledger line says so. */
  readonly counted: "upstream" | "estimate";
}

/** Why a count is implausible according to the catalog or the request. */
export type Surprise = "output_above_max" | "output_above_limit" | "input_above_context";

/** Usage at a route. */
export interface RouteUse {
  readonly route: Route;
  readonly metered: Metered;
  /** The tier that is charged; undefined for the standard one. */
  readonly tier: string | undefined;
  /** `complete`, or why the answer was cut or not delivered. */
  readonly ended: string;
  /** Answers only: implausible values in the upstream's count. */
  readonly surprises?: readonly Surprise[];
  /** Answers only: calls of hosted tools that the upstream counts and no client is charged for. */
  readonly unpaidCalls?: readonly UnpaidCalls[];
  /** Estimated answers only: the calls seen beyond those that the hold covers; undefined: none. */
  readonly callsBeyondHold?: Readonly<Record<string, number>> | undefined;
  /** Answers only: the model that answered according to the upstream, if it differs from the one asked for. */
  readonly answeredBy?: string | undefined;
}

/** An attempt, and what it has used. */
export interface UsedAttempt {
  readonly attempt: AttemptFacts;
  /** Undefined if no upstream bills it. */
  readonly used: RouteUse | undefined;
  /** A word for the ledger: why the attempt is billed or not, or how the answer ended. */
  readonly why: string;
}

/** Whether the client caused an attempt that is billed but not delivered. */
export function isClientsDoing({ outcome, askedFor }: AttemptFacts): boolean {
  return outcome === CLIENT_GONE || askedFor === true;
}

/** What a request has used. */
interface RequestUse {
  readonly answer: RouteUse | undefined;
  /** Every attempt, in order. The last one is the answer's, if an attempt was recorded for it. */
  readonly attempts: readonly UsedAttempt[];
  /** Calls of hosted tools that no client is charged for, if the route has a price for them. */
  readonly unpaid: RouteUse | undefined;
}

/** What a request has used, attempt by attempt. */
export function usedBy(terms: ChargeTerms, ending: Ending): RequestUse {
  const { route, delivered, complete, attempts = [] } = ending;
  const used: UsedAttempt[] = [];
  for (const attempt of attempts) if (attempt.outcome !== "ok") used.push(failedAttempt(attempt, terms));
  if (!route) return { answer: undefined, attempts: used, unpaid: undefined };
  const answer = answerOf(terms, ending, route);
  const last = attempts.at(-1);
  if (last?.outcome === "ok") {
    used.push({ attempt: last, used: answer, why: delivered && complete ? "answered" : answer.ended });
  }
  const { tier, unpaidCalls = [] } = answer;
  if (unpaidCalls.length === 0) return { answer, attempts: used, unpaid: undefined };
  const usage = { ...NO_USAGE, toolCalls: pricedCalls(unpaidCalls, route.cost.tools) };
  return {
    answer,
    attempts: used,
    unpaid: { route, metered: { usage, counted: "upstream" }, tier, ended: UNPAID_CALLS },
  };
}

/** The cause of the absorbed line for calls of hosted tools that were not asked for or exceed the maximum. */
const UNPAID_CALLS = "unpaid_tool_calls";

/**
 * The tier at which an attempt is charged: the one that the upstream was asked for. It may differ from the client's,
 * because a translation may leave the tier out.
 * @param sent undefined for the standard tier. If what was sent has no price of its own, the tier of the request's
 * terms is charged: several tiers may have only one price together.
 */
export function tierCharged({ model, terms }: Pick<ChargeTerms, "model" | "terms">, sent: string | undefined) {
  return sent === undefined || model.price.tiers.has(sent) ? sent : terms.tier;
}

/**
 * A failed attempt. Without a count, upstreams bill neither their own refusals nor what never reached them. Any other
 * failed attempt may be on their bill.
 */
function failedAttempt(attempt: AttemptFacts, terms: ChargeTerms): UsedAttempt {
  const { upstream, model, sentToUpstream, refusedByUpstream, usage, outcome: ended } = attempt;
  if (!sentToUpstream) return { attempt, used: undefined, why: "not_sent" };
  if (refusedByUpstream && usage === undefined) return { attempt, used: undefined, why: "refused" };
  const route = terms.model.routes.find((one) => one.upstream === upstream && one.upstreamModel === model);
  if (!route) return { attempt, used: undefined, why: "unknown_route" };
  const tier = tierCharged(terms, attempt.tier);
  return { attempt, used: { route, metered: meterFailed(attempt, terms), tier, ended }, why: "sent" };
}

const ESTIMATE_BYTES_PER_TOKEN = 4;

/**
 * What a failed attempt has used. If the upstream counted it, that count is on the upstream's bill. Without a count the
 * estimate is: the input, the part of the answer that arrived at 4 bytes per token, and what may have been produced
 * unseen. If the client caused the failure, unseen calls of the offered tools are added, as many of each as the hold
 * covers.
 */
function meterFailed(attempt: AttemptFacts, { terms, outputMost, model }: ChargeTerms): Metered {
  const { usage: counted, bytesReceived, hiddenTokens = 0, unseenCalls = {} } = attempt;
  if (counted !== undefined) {
    const beside = { final: true, inputEstimate: terms.inputEstimate, outputEstimate: 0 };
    const { usage, estimated } = billedUsage(counted, beside);
    return { usage, counted: estimated ? "estimate" : "upstream" };
  }
  // The more expensive estimate of the two if the client caused it, as for a stream whose client disconnected.
  const input = isClientsDoing(attempt) ? terms.inputTokens : terms.inputEstimate;
  const written = Math.ceil(bytesReceived / ESTIMATE_BYTES_PER_TOKEN) + Math.ceil(hiddenTokens);
  const output = Math.min(written, outputMost * terms.choices);
  const unseen = isClientsDoing(attempt) ? unseenCalls : {};
  const { charged: toolCalls } = billTools(unseen, terms.tools, model.toolCalls.max);
  return { usage: { ...NO_USAGE, input, output, toolCalls }, counted: "estimate" };
}

/** The answer. One that was not delivered never counts as complete, even if the upstream completed it. */
function answerOf(terms: ChargeTerms, ending: Ending, route: Route): RouteUse {
  const { delivered, complete, cause, measured } = ending;
  const tier = tierCharged(terms, ending.tier);
  const ended = delivered ? (complete ? COMPLETE : cause) : cause === COMPLETE ? NO_OUTPUT : cause;
  const evidence = evidenceOf(terms, ending, route);
  const counted = meter(measured, evidence);
  const surprises = surprisesOf(counted, terms);
  const { metered, unpaidCalls } = withCalls(terms, counted, measured.produced, route);
  const callsBeyondHold = beyondHold(terms, metered);
  return { route, metered, tier, ended, surprises, unpaidCalls, callsBeyondHold, answeredBy: measured.answeredBy };
}

function beyondHold(
  { terms: { tools }, model: { toolCalls } }: ChargeTerms,
  { usage, counted }: Metered,
): Readonly<Record<string, number>> | undefined {
  if (counted === "upstream") return undefined;
  let beyond: Record<string, number> | undefined;
  for (const tool of tools) {
    const more = (usage.toolCalls[tool] ?? 0) - toolCalls.held;
    if (more > 0) beyond = { ...beyond, [tool]: more };
  }
  return beyond;
}

/** The cause of an absorbed line for a stream that ended with neither output nor a count. */
const NO_OUTPUT = "no_output";

/** How a missing count is estimated. */
export interface Evidence {
  /** Input tokens. */
  readonly input: number;
  /** Real tokens per token estimated from characters, at least 1. */
  readonly visibleFactor: number;
  /** Whether each event counts as a token, if it has enough bytes. */
  readonly byEvent: boolean;
  /** Hidden tokens per second of silence. */
  readonly hiddenPerS: number;
  /** Maximum output that the upstream was asked for, all choices together. */
  readonly outputMost: number;
  /** The model's context size. */
  readonly contextTokens: number;
  /** Calls of hosted tools that the upstream may have made without showing them. */
  readonly unseenCalls: Readonly<Record<string, number>>;
}

const MS_PER_S = 1_000;
/** Bytes per token of the densest text. Events with fewer bytes do not count as a token each. */
const DENSEST_BYTES_PER_TOKEN = 2;

/**
 * What a running reply has used so far, as it would be billed if it ended this way now; its route does not matter yet.
 */
export function meterSoFar(terms: ChargeTerms, seen: MeasuredReply, end: ReplyEnd): Usage {
  const evidence = evidenceOf(terms, end, undefined);
  return withCalls(terms, meter(seen, evidence), seen.produced, undefined).metered.usage;
}

/**
 * Adds the tool calls to the bill: calls of hosted tools that the request offered, and the extras that it asked for.
 * Also returns the calls that no client is charged for.
 * @param route that answered; undefined: not known yet.
 */
function withCalls(
  terms: ChargeTerms,
  { usage, counted }: Metered,
  { served }: ProducedCounts,
  route: Route | undefined,
): { readonly metered: Metered; readonly unpaidCalls: readonly UnpaidCalls[] } {
  const extras = extrasOf(terms, route);
  const { tools } = terms.terms;
  const calls = served?.ended ? withShownCalls(usage.toolCalls, served.ended, tools) : usage.toolCalls;
  const { charged, unpaid } = billTools(calls, tools, terms.model.toolCalls.max);
  const toolCalls: Record<string, number> = extras.length > 0 ? { ...charged } : charged;
  for (const extra of extras) toolCalls[extra] = (toolCalls[extra] ?? 0) + 1;
  return { metered: { usage: { ...usage, toolCalls }, counted }, unpaidCalls: unpaid };
}

/**
 * The extras that a request asked for by a member of its own (`price.options`). Each counts as one call of a tool of
 * that name, because no upstream counts them. Most extras do not reach a route that needs translation.
 */
function extrasOf({ terms: { client, options = [] } }: ChargeTerms, route: Route | undefined): readonly string[] {
  if (!route || options.length === 0) return options;
  return options.filter((option) => reachesUpstream(option, client, route.protocol));
}

/**
 * How to estimate a count that never arrived:
 * - The client disconnected, or its stop string ended the reply: the client caused it, so the highest count that the
 *   evidence allows.
 * - The reply ended by itself or because funds ran out: hidden output is added if the model is known to hide some.
 * - Anything else cut the reply: only what was seen. No client pays for a guess when the upstream or the gateway broke
 *   off.
 * @param route that answered; undefined: the reply still runs, and unseen calls are not counted yet.
 */
function evidenceOf(
  { terms, outputMost, model }: ChargeTerms,
  { cause, complete, stopped, pace }: ReplyEnd,
  route: Route | undefined,
): Evidence {
  const left = stopped === true || (cause === CLIENT_GONE && !complete);
  const hides = left ? pace?.thinks !== "no" : pace?.thinks === "yes" && MAY_HIDE.has(cause);
  return {
    input: left ? terms.inputTokens : terms.inputEstimate,
    visibleFactor: left ? (pace?.visibleFactor ?? 1) : 1,
    byEvent: left,
    hiddenPerS: hides ? (pace?.hiddenPerS ?? 0) : 0,
    outputMost: outputMost * terms.choices,
    contextTokens: model.contextTokens,
    unseenCalls: left && route ? unseenCalls(terms.tools, model.toolCalls.held, route.protocol) : {},
  };
}

/** Ends for which hidden output is added if the model is known to hide some. */
const MAY_HIDE: ReadonlySet<string> = new Set([COMPLETE, CLIENT_GONE, BRAKE]);

/**
 * Returns the upstream's final count if there is one; a missing side (input or output) is estimated. Without a final
 * count it is what was seen plus what may have been hidden, up to the requested limit. A snapshot then gives the input,
 * which is final from the start, and the output if that is more than what was seen. Calls of hosted tools that were
 * seen count as made, and their results count as additional input.
 */
export function meter({ usage: counted, final, produced, silentMs }: MeasuredReply, evidence: Evidence): Metered {
  const shown = visible(produced, evidence);
  const isLast = final && counted !== undefined;
  const { usage, estimated } = billedUsage(counted, {
    final: isLast,
    inputEstimate: evidence.input,
    outputEstimate: shown,
  });
  if (!estimated) return { usage, counted: "upstream" };
  const isOutputCounted = isLast && (!counted.outputUncounted || counted.unsplit !== undefined);
  if (isOutputCounted) return { usage, counted: "estimate" };
  const hidden = Math.ceil((silentMs / MS_PER_S) * evidence.hiddenPerS);
  // Visible output counts even beyond the requested limit; hidden output counts only up to it.
  const output = Math.max(usage.output, Math.min(addCounts(usage.output, hidden), evidence.outputMost));
  if (isLast) return { usage: { ...usage, output }, counted: "estimate" };
  const { calls = {}, foundTokens = 0 } = produced.served ?? {};
  const toolCalls = mergedCalls(mergedCalls(usage.toolCalls, calls), evidence.unseenCalls);
  const found = Math.min(foundTokens, Math.max(0, evidence.contextTokens - totalInput(usage)));
  return { usage: { ...usage, input: usage.input + found, output, toolCalls }, counted: "estimate" };
}

function visible({ bytes, tokens, deltas }: ProducedCounts, { visibleFactor, byEvent }: Evidence): number {
  const read = Math.ceil(tokens * visibleFactor);
  if (!byEvent) return read;
  return Math.max(read, Math.min(deltas, Math.ceil(bytes / DENSEST_BYTES_PER_TOKEN)));
}

/** What is implausible about an upstream's final count, which is charged anyway. */
function surprisesOf(
  { usage, counted }: Metered,
  { model: { contextTokens, maxOutputTokens }, outputMost, terms: { choices } }: ChargeTerms,
): readonly Surprise[] {
  if (counted !== "upstream") return [];
  const surprises: Surprise[] = [];
  if (usage.output > maxOutputTokens * choices) surprises.push("output_above_max");
  else if (usage.output > outputMost * choices) surprises.push("output_above_limit");
  // A reply that read its input more than once has the context size for each reading.
  if (stepInput(usage) > contextTokens) surprises.push("input_above_context");
  return surprises;
}
