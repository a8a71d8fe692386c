/**
 * What a request has used, try by try: from what the upstream counted, or what was seen going by, to the tokens that are billed
 * (ARCHITECTURE.md promise 3).
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

/** The end of a reply that came to its own. */
export const COMPLETE = "complete";
/** The end of a stream for which neither hold nor funds reached further. */
export const BRAKE = "brake";
/** The outcome of a try, or the end of a reply, whose client left. */
export const CLIENT_GONE = "client_gone";

/** What is known when a request ends. */
export interface MeasuredReply {
  /** The upstream's count, if it gave one; in a cut stream perhaps a snapshot from before its end. */
  readonly usage: Usage | undefined;
  /** Whether that count is the upstream's last word. */
  readonly final: boolean;
  /** What was seen going by. */
  readonly produced: ProducedCounts;
  /** Time in which nothing was shown since the last count, the first second of each silence left out. */
  readonly silentMs: number;
  /** The model that the upstream says has answered, where that is another than was asked for. */
  readonly answeredBy?: string | undefined;
}

/** How a reply ended, as far as its tokens depend on it. */
interface ReplyEnd {
  /** `complete`, or why nothing was delivered or the stream was cut. */
  readonly cause: string;
  /** Whether the upstream's reply came to its own end. */
  readonly complete: boolean;
  /** Whether the upstream had to be stopped before its count, after a stop string of the client's. */
  readonly stopped?: boolean;
  /** How the model writes that answered; without it nothing is taken to be hidden. */
  readonly pace?: Pace | undefined;
}

/** A try as dispatch records it (dispatch/ask.ts, AttemptRecord). */
export interface AttemptFacts {
  readonly upstream: string;
  /** The model's name at the upstream. */
  readonly model: string;
  /** `ok`, `client_gone`, or the cause of the failure. */
  readonly outcome: string;
  readonly status: number | undefined;
  readonly bytesReceived: number;
  /** Output tokens that may have been written, for the time in which nothing came. */
  readonly hiddenTokens?: number | undefined;
  /** Calls of the tools that it was offered, by their names, which its upstream has had the time to make unseen. */
  readonly unseenCalls?: Readonly<Record<string, number>> | undefined;
  readonly sentToUpstream: boolean;
  /** The tier that it was asked for; undefined for the standard one. */
  readonly tier?: string | undefined;
  /** The upstream itself refused: nobody pays for such a try. */
  readonly refusedByUpstream: boolean;
  /** What the upstream counted for it, although it failed. */
  readonly usage?: Usage | undefined;
  /** Its client can have asked for its failure: an answer larger than can be held, a call that its model could not write. */
  readonly askedFor?: boolean | undefined;
}

/** How the request ended for the money. */
export interface Ending extends ReplyEnd {
  /**
   * Whether the client pays (ARCHITECTURE.md promise 3): output or a proper end with a count was handed to a socket not known
   * to be closed, or the stream was ended here for want of funds.
   */
  readonly delivered: boolean;
  /** The route of the attempt that answered, or undefined when none did. */
  readonly route: Route | undefined;
  /** The tier that this attempt was sent; undefined for the standard one. */
  readonly tier?: string | undefined;
  /** Whether the client can have brought the failure about: what it was not given is absorbed as if it had left. */
  readonly askedFor?: boolean;
  readonly measured: MeasuredReply;
  /** Every try, in order, the answered one included. */
  readonly attempts?: readonly AttemptFacts[] | undefined;
  /**
   * What an account may cost in a day by leaving before it is given anything; undefined where that is not asked, since it
   * was not the client that ended the request.
   */
  readonly leftAllowance?: NanoUsd | undefined;
}

export interface Metered {
  readonly usage: Usage;
  /** Who counted; the ledger line says so. */
  readonly counted: "upstream" | "estimate";
}

/** What a count says that cannot be, as far as the catalog knows. */
export type Surprise = "output_above_max" | "output_above_limit" | "input_above_context";

/** What was used at a route. */
export interface RouteUse {
  readonly route: Route;
  readonly metered: Metered;
  /** The tier that it is charged at; undefined for the standard one. */
  readonly tier: string | undefined;
  /** `complete`, or why the answer was cut or nobody got it. */
  readonly ended: string;
  /** Of an answer: what the upstream's count says that cannot be. */
  readonly surprises?: readonly Surprise[];
  /** Of an answer: calls of hosted tools that the server counts and nobody is charged for. */
  readonly unpaidCalls?: readonly UnpaidCalls[];
  /** Of an answer that is estimated: the calls that were seen beyond those that are held for; undefined: none. */
  readonly callsBeyondHold?: Readonly<Record<string, number>> | undefined;
  /** Of an answer: the model that has given it by the upstream's own word, where that is another than was asked for. */
  readonly answeredBy?: string | undefined;
}

/** A try, and what it has used. */
export interface UsedTry {
  readonly attempt: AttemptFacts;
  /** Undefined where nobody bills it. */
  readonly used: RouteUse | undefined;
  /** Why that is so, or how an answer ended, as a word for the ledger. */
  readonly why: string;
}

/** Whether its client has brought about that a try is billed and not delivered. */
export function isClientsDoing({ outcome, askedFor }: AttemptFacts): boolean {
  return outcome === CLIENT_GONE || askedFor === true;
}

/** What a request has used. */
interface RequestUse {
  readonly answer: RouteUse | undefined;
  /** Every try, in order; the last is the answer's, where that was tried for. */
  readonly tries: readonly UsedTry[];
  /** Calls of hosted tools that nobody is charged for, as far as the route has a price for them. */
  readonly unpaid: RouteUse | undefined;
}

/** What a request has used, try by try. */
export function usedBy(terms: ChargeTerms, ending: Ending): RequestUse {
  const { route, delivered, complete, attempts = [] } = ending;
  const tries: UsedTry[] = [];
  for (const attempt of attempts) if (attempt.outcome !== "ok") tries.push(failedTry(attempt, terms));
  if (!route) return { answer: undefined, tries, unpaid: undefined };
  const answer = answerOf(terms, ending, route);
  const last = attempts.at(-1);
  if (last?.outcome === "ok") {
    tries.push({ attempt: last, used: answer, why: delivered && complete ? "answered" : answer.ended });
  }
  const { tier, unpaidCalls = [] } = answer;
  if (unpaidCalls.length === 0) return { answer, tries, unpaid: undefined };
  const usage = { ...NO_USAGE, toolCalls: pricedCalls(unpaidCalls, route.cost.tools) };
  return { answer, tries, unpaid: { route, metered: { usage, counted: "upstream" }, tier, ended: UNPAID_CALLS } };
}

/** The cause of the absorbed line for calls of hosted tools that were not asked for, or beyond the maximum. */
const UNPAID_CALLS = "unpaid_tool_calls";

/**
 * The tier that a try is charged at: the one that its upstream was asked for, whatever its client asked for, since a
 * translation may have left it out.
 * @param sent undefined for the standard one. What is sent of several that have a price together only is charged as those.
 */
export function tierCharged({ model, terms }: Pick<ChargeTerms, "model" | "terms">, sent: string | undefined) {
  return sent === undefined || model.price.tiers.has(sent) ? sent : terms.tier;
}

/**
 * A try that failed. Without a count, upstreams bill neither their own refusals nor what never reached them; one that broke
 * off otherwise may be on their bill.
 */
function failedTry(attempt: AttemptFacts, terms: ChargeTerms): UsedTry {
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
 * What a try that failed has used. What its upstream counted is on the upstream's bill. Without a count it may be there
 * with its input, with what came of an answer, at 4 bytes a token, and with what may have been written unseen; one that its
 * client left, with as many calls of the tools that it offered as are held for.
 */
function meterFailed(attempt: AttemptFacts, { terms, outputMost, model }: ChargeTerms): Metered {
  const { usage: counted, bytesReceived, hiddenTokens = 0, unseenCalls = {} } = attempt;
  if (counted !== undefined) {
    const beside = { final: true, inputEstimate: terms.inputEstimate, outputEstimate: 0 };
    const { usage, estimated } = billedUsage(counted, beside);
    return { usage, counted: estimated ? "estimate" : "upstream" };
  }
  // As for a stream that its client left: the dearer of the two.
  const input = isClientsDoing(attempt) ? terms.inputTokens : terms.inputEstimate;
  const written = Math.ceil(bytesReceived / ESTIMATE_BYTES_PER_TOKEN) + Math.ceil(hiddenTokens);
  const output = Math.min(written, outputMost * terms.choices);
  const unseen = isClientsDoing(attempt) ? unseenCalls : {};
  const { charged: toolCalls } = billTools(unseen, terms.tools, model.toolCalls.max);
  return { usage: { ...NO_USAGE, input, output, toolCalls }, counted: "estimate" };
}

/** The answer; one that nobody got has not ended well, however it ended at its upstream. */
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

/** The cause of an absorbed line for a stream that came to its end with neither output nor a count. */
const NO_OUTPUT = "no_output";

/** How a missing count is made up for. */
export interface Evidence {
  /** Input tokens. */
  readonly input: number;
  /** How many real tokens one token estimated from characters may be, at least 1. */
  readonly visibleFactor: number;
  /** Whether a token is reckoned for each event, where its bytes allow that. */
  readonly byEvent: boolean;
  /** Hidden tokens for each second of silence. */
  readonly hiddenPerS: number;
  /** The most that the upstream was asked for, all choices together. */
  readonly outputMost: number;
  /** The most that the model reads at one time. */
  readonly contextTokens: number;
  /** Calls of hosted tools that the upstream may have made without showing them. */
  readonly unseenCalls: Readonly<Record<string, number>>;
}

const MS_PER_S = 1_000;
/** The densest text has about so many bytes per token; events with fewer bytes are not a token each. */
const DENSEST_BYTES_PER_TOKEN = 2;

/** What a running reply has used so far, as it would be billed if it ended so now; its route does not matter yet. */
export function meterSoFar(terms: ChargeTerms, seen: MeasuredReply, end: ReplyEnd): Usage {
  const evidence = evidenceOf(terms, end, undefined);
  return withCalls(terms, meter(seen, evidence), seen.produced, undefined).metered.usage;
}

/**
 * The bill's calls of tools: of hosted tools those that the request has offered, and the extras that it has asked for; beside
 * them the calls that nobody is charged for.
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
 * The extras that a request asked for by a member of its own (`price.options`), as calls of tools of their names: no upstream
 * counts them, so each is one call. A route that is translated to does not get most of them.
 */
function extrasOf({ terms: { client, options = [] } }: ChargeTerms, route: Route | undefined): readonly string[] {
  if (!route || options.length === 0) return options;
  const upstream = { protocol: route.protocol, openaiNative: route.capabilities.openaiNative };
  return options.filter((option) => reachesUpstream(option, client, upstream));
}

/**
 * What stands for a count that never came. A client that left, or whose stop string ended the reply, has brought that
 * about itself, so the dearest counts that the evidence allows. What ended by itself or for want of funds may hide
 * something where the model is known to. What anything else has cut is charged as it was seen: no client pays a guess for
 * what the upstream or the gateway broke off.
 * @param route that answered; undefined: the reply still runs, and what it has not shown is not reckoned yet.
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

/** Ends, other than by a client that left, for which hidden output is reckoned. */
const MAY_HIDE: ReadonlySet<string> = new Set([COMPLETE, CLIENT_GONE, BRAKE]);

/**
 * The upstream's final count, if there is one; a side that it lacks is estimated. Without a final count: what was seen
 * plus what may have been hidden, within the limit asked for. A snapshot then gives the input, which is final from the
 * start, and the output where that is more than what was seen. Calls of the server's tools that were seen have been made, and
 * what they found is input beside the request's.
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
  // What was shown counts even beyond the limit asked for; what may be hidden counts only up to it.
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

/** What is surprising about an upstream's final count, which is charged anyway. */
function surprisesOf(
  { usage, counted }: Metered,
  { model: { contextTokens, maxOutputTokens }, outputMost, terms: { choices } }: ChargeTerms,
): readonly Surprise[] {
  if (counted !== "upstream") return [];
  const surprises: Surprise[] = [];
  if (usage.output > maxOutputTokens * choices) surprises.push("output_above_max");
  else if (usage.output > outputMost * choices) surprises.push("output_above_limit");
  // A reply that has read its input more than once has a context for each reading.
  if (stepInput(usage) > contextTokens) surprises.push("input_above_context");
  return surprises;
}
