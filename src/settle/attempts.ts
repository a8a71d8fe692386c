/**
 * What each try at an upstream cost, who pays for it and why (ARCHITECTURE.md promise 3). One of them at most was
 * answered; a failed one may still have cost the operator, and then becomes an `absorbed` line of its own.
 */

import type { ChargeTerms } from "../store/charge-terms.ts";
import type { AbsorbedAttempt, UpstreamCost } from "../store/settlement.ts";
import type { Route } from "../values/catalog.ts";
import { type NanoUsd, ZERO } from "../values/money.ts";
import { charge, MULTIPLIER_ONE } from "../values/price.ts";
import { billedUsage, NO_USAGE, totalInput, type Usage } from "../values/tokens/usage.ts";
import { absorbedCost, memoOf, toolPrices, unitPrices } from "./memo.ts";
import type { Metered } from "./meter.ts";

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

/** A try as the ledger keeps it: flat, cost in nano-dollars. */
interface AttemptNote {
  readonly upstream: string;
  readonly model: string;
  readonly outcome: string;
  readonly status: number | undefined;
  /** All input tokens, cached ones included. */
  readonly input: number;
  readonly output: number;
  readonly counted: "upstream" | "estimate" | "none";
  /** At the route's cost price, multiplier 1. */
  readonly cost: string;
  readonly paid_by: "client" | "absorbed" | "nobody";
  readonly why: string;
  /** The route's cost prices, where the line has others. */
  readonly cost_prices?: Readonly<Record<string, string>> | undefined;
  readonly cost_tools?: Readonly<Record<string, string>> | undefined;
}

/** How the answered try ended. */
interface AnsweredFacts {
  readonly route: Route;
  readonly metered: Metered;
  readonly delivered: boolean;
  /** Why nothing was delivered, or the stream was cut. */
  readonly cause: string;
  readonly complete: boolean;
}

export interface AttemptAccount {
  readonly notes: readonly AttemptNote[];
  /** Failed tries that cost something, in their order. */
  readonly absorbed: readonly AbsorbedAttempt[];
  /** What each of them costs. */
  readonly costs: readonly UpstreamCost[];
  /** The try that was wasted by the client, where its upstream had the request; it is not among the others. */
  readonly left?: LeftTry | undefined;
}

/** A try that had no answer yet when its client left, or an answer that cannot be held. */
export interface LeftTry {
  readonly route: Route;
  readonly tier: string | undefined;
  readonly metered: Metered;
  readonly cause: string;
}

const ESTIMATE_BYTES_PER_TOKEN = 4;
/** The outcome of a try, or the end of a reply, whose client left. */
export const CLIENT_GONE = "client_gone";

/** Whether its client has brought about that a try is billed and not delivered. */
function isClientsDoing({ outcome, askedFor }: AttemptFacts): boolean {
  return outcome === CLIENT_GONE || askedFor === true;
}

/**
 * The tier that a try is charged at: the one that its upstream was asked for, whatever its client asked for, since a
 * translation may have left it out.
 * @param sent undefined for the standard one. What is sent of several that have a price together only is charged as those.
 */
export function tierCharged({ model, terms }: Pick<ChargeTerms, "model" | "terms">, sent: string | undefined) {
  return sent === undefined || model.price.tiers.has(sent) ? sent : terms.tier;
}

/** Judges every try of a request. @param answered undefined when none was answered. */
export function accountFor(
  attempts: readonly AttemptFacts[],
  terms: ChargeTerms,
  answered: AnsweredFacts | undefined,
): AttemptAccount {
  const notes: AttemptNote[] = [];
  const absorbed: AbsorbedAttempt[] = [];
  let left: LeftTry | undefined;
  const costs: UpstreamCost[] = [];
  for (const attempt of attempts) {
    if (attempt.outcome === "ok") {
      if (answered) notes.push(noteOfAnswer(attempt, terms, answered));
      continue;
    }
    const { note, line, cost, sent } = judgeFailed(attempt, terms);
    notes.push(note);
    if (isClientsDoing(attempt)) {
      left = sent;
      continue;
    }
    if (line) absorbed.push(line);
    if (cost) costs.push(cost);
  }
  return { notes, absorbed, costs, left };
}

function noteOfAnswer(attempt: AttemptFacts, terms: ChargeTerms, answered: AnsweredFacts): AttemptNote {
  const { route, metered, delivered, complete, cause } = answered;
  const { amount, snapshot } = charge(route.cost, MULTIPLIER_ONE, metered.usage, tierCharged(terms, attempt.tier));
  // What nobody got is on the line at the route's cost already.
  const own = delivered && route.cost !== terms.model.price;
  return {
    ...factsOf(attempt),
    input: totalInput(metered.usage),
    output: metered.usage.output,
    counted: metered.counted,
    cost: String(amount),
    paid_by: delivered ? "client" : "absorbed",
    why: complete ? "answered" : cause,
    cost_prices: own ? unitPrices(snapshot.prices) : undefined,
    cost_tools: own ? toolPrices(snapshot) : undefined,
  };
}

/**
 * A try that failed. What its upstream counted is on the upstream's bill. Without a count, upstreams bill neither their
 * own refusals nor what never reached them. A try that broke off otherwise may be on their bill: its input, what they
 * had sent of an answer, at 4 bytes a token, and what they may have written unseen.
 */
function judgeFailed(
  attempt: AttemptFacts,
  terms: ChargeTerms,
): {
  readonly note: AttemptNote;
  readonly line?: AbsorbedAttempt | undefined;
  readonly cost?: UpstreamCost | undefined;
  readonly sent?: LeftTry;
} {
  const free = !attempt.sentToUpstream ? "not_sent" : saysNoForNothing(attempt) ? "refused" : undefined;
  const route = routeOf(attempt, terms);
  if (free !== undefined || route === undefined) {
    return { note: noteOfFailure(attempt, ZERO, free ?? "unknown_route") };
  }
  const metered = counted(attempt, terms) ?? estimate(attempt, terms);
  const tier = tierCharged(terms, attempt.tier);
  const { amount, snapshot } = charge(route.cost, MULTIPLIER_ONE, metered.usage, tier);
  const { upstream, model, outcome } = attempt;
  const memo = memoOf({
    metered,
    snapshot,
    tier,
    ended: outcome,
    hold: terms.hold,
    catalog: terms.catalogVersion,
    upstream,
    upstreamModel: model,
    cost: amount,
  });
  const note = noteOfFailure(attempt, amount, "sent", metered);
  const sent = { route, metered, tier: attempt.tier, cause: outcome };
  if (amount === 0n) return { note, sent };
  const line = { upstream, cause: outcome, amount, memo };
  return { note, line, cost: absorbedCost(route, metered.usage, amount), sent };
}

function saysNoForNothing({ refusedByUpstream, usage }: AttemptFacts): boolean {
  return refusedByUpstream && usage === undefined;
}

/** What the upstream itself counted for a reply that failed. */
function counted({ usage }: AttemptFacts, { terms }: ChargeTerms): Metered | undefined {
  if (usage === undefined) return undefined;
  const billed = billedUsage(usage, { final: true, inputEstimate: terms.inputEstimate, outputEstimate: 0 });
  return { usage: billed.usage, counted: billed.estimated ? "estimate" : "upstream" };
}

function estimate(attempt: AttemptFacts, { outputMost, terms }: ChargeTerms): Metered {
  const { bytesReceived, hiddenTokens = 0 } = attempt;
  const output = Math.ceil(bytesReceived / ESTIMATE_BYTES_PER_TOKEN) + Math.ceil(hiddenTokens);
  const most = outputMost * terms.choices;
  return {
    // As for a stream that its client left: the dearer of the two.
    usage: {
      ...NO_USAGE,
      input: isClientsDoing(attempt) ? terms.inputTokens : terms.inputEstimate,
      output: Math.min(output, most),
    },
    counted: "estimate",
  };
}

function noteOfFailure(attempt: AttemptFacts, cost: NanoUsd, why: string, metered?: Metered): AttemptNote {
  return {
    ...factsOf(attempt),
    input: metered ? totalInput(metered.usage) : 0,
    output: metered?.usage.output ?? 0,
    counted: metered?.counted ?? "none",
    cost: String(cost),
    paid_by: cost > 0n ? "absorbed" : "nobody",
    why,
  };
}

function factsOf({ upstream, model, outcome, status }: AttemptFacts) {
  return { upstream, model, outcome, status };
}

function routeOf({ upstream, model }: AttemptFacts, terms: ChargeTerms): Route | undefined {
  return terms.model.routes.find((route) => route.upstream === upstream && route.upstreamModel === model);
}
