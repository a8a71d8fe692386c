/** What a request costs the client and the operator once it has ended: pure arithmetic over the permit. */

import type { ChargeTerms } from "../store/charge-terms.ts";
import { type AbsorbedAttempt, CUT_OVER_HOLD, type SettleAsk, type UpstreamCost } from "../store/settlement.ts";
import { tokenSumsOf } from "../store/sums/token-sums.ts";
import type { GroupKind, Route } from "../values/catalog.ts";
import type { IdempotentRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";
import { charge, MULTIPLIER_ONE } from "../values/price.ts";
import type { RequestId } from "../values/request-id.ts";
import { billTools, pricedCalls, type UnpaidCalls } from "../values/tokens/tool-calls.ts";
import { NO_USAGE, totalInput, type Usage } from "../values/tokens/usage.ts";
import {
  type AttemptAccount,
  type AttemptFacts,
  accountFor,
  CLIENT_GONE,
  type LeftTry,
  tierCharged,
} from "./attempts.ts";
import { absorbedCost, BRAKE, COMPLETE, chargedCost, eachOnce, type MemoFacts, memoOf } from "./memo.ts";
import {
  type Evidence,
  type Expected,
  type MeasuredReply,
  type Metered,
  meter,
  type Surprise,
  surprisesOf,
  withOptions,
} from "./meter.ts";
import type { Pace } from "./observed.ts";

/** How the request ended for the money. */
export interface Ending {
  /**
   * Whether the client pays (ARCHITECTURE.md promise 3): output or a proper end with a count was handed to a socket not known
   * to be closed, or the stream was ended here for want of funds.
   */
  readonly delivered: boolean;
  /** Whether the upstream's reply came to its own end. */
  readonly complete: boolean;
  /** The route of the attempt that answered, or undefined when none did. */
  readonly route: Route | undefined;
  /** The tier that this attempt was sent; undefined for the standard one. */
  readonly tier?: string | undefined;
  /** `complete`, or why nothing was delivered or the stream was cut; names the absorbed line. */
  readonly cause: string;
  /** Whether the upstream had to be stopped before its count, after a stop string of the client's. */
  readonly stopped?: boolean;
  /** Whether the client can have brought the failure about: what it was not given is absorbed as if it had left. */
  readonly askedFor?: boolean;
  readonly measured: MeasuredReply;
  /** How the model writes that answered; without it nothing is taken to be hidden. */
  readonly pace?: Pace | undefined;
  /** Every try, in order, the answered one included. */
  readonly attempts?: readonly AttemptFacts[] | undefined;
  /**
   * What an account may cost in a day by leaving before it is given anything; undefined where that is not asked, since it
   * was not the client that ended the request.
   */
  readonly leftAllowance?: NanoUsd | undefined;
}

export interface Charge {
  readonly ask: SettleAsk;
  readonly metered: Metered | undefined;
  /** What the upstream's count says that cannot be. */
  readonly surprises: readonly Surprise[];
  /** Calls of hosted tools that the server counts and nobody is charged for. */
  readonly unpaidCalls: readonly UnpaidCalls[];
}

/** The settlement of a request that reached its end, however it ended. */
export function settlementOf(terms: ChargeTerms, ending: Ending): Charge {
  const { route, attempts = [] } = ending;
  if (!route) {
    const account = accountFor(attempts, terms, undefined);
    const ask = account.left ? leftUnanswered(terms, ending, account, account.left) : unanswered(terms, account);
    return { ask, metered: undefined, surprises: [], unpaidCalls: [] };
  }
  const { metered, unpaidCalls } = meteredOf(terms, ending.measured, evidenceOf(terms, ending), route);
  const surprises = surprisesOf(metered, expectedOf(terms));
  const booked = bookedAs(ending);
  const account = accountFor(attempts, terms, { ...booked, route, metered });
  const tier = tierCharged(terms, ending.tier);
  const { amount: cost, snapshot } = charge(route.cost, MULTIPLIER_ONE, metered.usage, tier);
  const unpaid = unpaidLine(terms, route, tier, unpaidCalls);
  const others = [...account.costs, ...unpaid.costs];
  const figures = { metered, tier, surprises, unpaidCalls, attempts: account.notes, cost, others };
  const ask = ending.delivered
    ? posted(terms, ending, route, figures)
    : absorbed(terms, booked, route, { ...figures, snapshot, byClient: ending.askedFor === true });
  const lines = [...account.absorbed, ...unpaid.lines];
  return { ask: withAbsorbed(ask, lines), metered, surprises, unpaidCalls };
}

/** An answer that nobody got has not ended well, however it ended at its upstream. */
function bookedAs(ending: Ending): Ending {
  if (ending.delivered) return ending;
  return { ...ending, complete: false, cause: ending.cause === COMPLETE ? NO_OUTPUT : ending.cause };
}

/** The cause of an absorbed line for a stream that came to its end with neither output nor a count. */
const NO_OUTPUT = "no_output";

function expectedOf({ model, outputMost, terms }: ChargeTerms): Expected {
  const { contextTokens, maxOutputTokens } = model;
  return { contextTokens, maxOutputTokens, outputMost, choices: terms.choices };
}

/**
 * What stands for a count that never came. A client that left, or whose stop string ended the reply, has brought that
 * about itself, so the dearest counts that the evidence allows. What ended by itself or for want of funds may hide
 * something where the model is known to. What anything else has cut is charged as it was seen: no client pays a guess for
 * what the upstream or the gateway broke off.
 */
function evidenceOf({ terms, outputMost }: ChargeTerms, { cause, complete, stopped, pace }: CutFacts): Evidence {
  const left = stopped === true || (cause === CLIENT_GONE && !complete);
  const hides = left ? pace?.thinks !== "no" : pace?.thinks === "yes" && MAY_HIDE.has(cause);
  return {
    input: left ? terms.inputTokens : terms.inputEstimate,
    visibleFactor: left ? (pace?.visibleFactor ?? 1) : 1,
    byEvent: left,
    hiddenPerS: hides ? (pace?.hiddenPerS ?? 0) : 0,
    outputMost: outputMost * terms.choices,
  };
}

/** Ends, other than by a client that left, for which hidden output is reckoned. */
const MAY_HIDE: ReadonlySet<string> = new Set([COMPLETE, CLIENT_GONE, BRAKE]);

type CutFacts = Pick<Ending, "cause" | "complete" | "stopped" | "pace" | "tier">;

/**
 * The client left before its upstream had answered, or made the answer too large to be held: as one that leaves an answer
 * before it is given anything of it.
 */
function leftUnanswered(
  terms: ChargeTerms,
  ending: Ending,
  { absorbed: failed, notes, costs: others }: AttemptAccount,
  { route, metered, tier: sent, cause }: LeftTry,
): SettleAsk {
  const tier = tierCharged(terms, sent);
  const { amount: cost, snapshot } = charge(route.cost, MULTIPLIER_ONE, metered.usage, tier);
  const figures = { metered, tier, attempts: notes, cost, snapshot, others };
  return withAbsorbed(absorbed(terms, { ...ending, route, cause }, route, { ...figures, byClient: true }), failed);
}

/** Nobody answered: the hold is given back, and what the tries may have cost is named. */
function unanswered(terms: ChargeTerms, { absorbed, notes, costs }: AttemptAccount): SettleAsk {
  const last = absorbed.at(-1);
  if (!last) return voidOf(terms);
  // No other line of the request has them.
  const memo = JSON.stringify({ ...JSON.parse(last.memo), attempts: notes });
  const lines = [...absorbed.slice(0, -1), { ...last, memo }];
  return withAbsorbed({ ...voidOf(terms), costs: eachOnce(costs) }, lines);
}

function withAbsorbed(ask: SettleAsk, attempts: readonly AbsorbedAttempt[]): SettleAsk {
  return attempts.length > 0 ? { ...ask, attempts: [...(ask.attempts ?? []), ...attempts] } : ask;
}

/** What a running request has used and cost so far, as it would be billed if it were cut here for this cause. */
export function costSoFar(
  terms: ChargeTerms,
  seen: MeasuredReply,
  cut: Omit<CutFacts, "complete">,
): { readonly usage: Usage; readonly cost: NanoUsd } {
  const { usage } = meteredOf(terms, seen, evidenceOf(terms, { ...cut, complete: false })).metered;
  const { amount } = charge(terms.model.price, terms.group.multiplier, usage, tierCharged(terms, cut.tier));
  return { usage, cost: amount };
}

/**
 * The bill's tokens, the extras that the request has asked for, and of the calls of hosted tools those that it offered.
 * @param route that answered; undefined: not known yet.
 */
function meteredOf(
  terms: ChargeTerms,
  measured: MeasuredReply,
  evidence: Evidence,
  route?: Route,
): { readonly metered: Metered; readonly unpaidCalls: readonly UnpaidCalls[] } {
  const metered = meter(measured, evidence);
  const bill = billTools(metered.usage.toolCalls, terms.terms.tools, terms.model.toolCalls.max);
  const paid = { ...metered, usage: { ...metered.usage, toolCalls: bill.charged } };
  return { metered: withOptions(paid, terms.terms, route), unpaidCalls: bill.unpaid };
}

/** What calls that nobody pays for cost the operator, as a line of its own; none where the route has no price for them. */
function unpaidLine(
  terms: ChargeTerms,
  route: Route,
  tier: string | undefined,
  unpaidCalls: readonly UnpaidCalls[],
): { readonly lines: readonly AbsorbedAttempt[]; readonly costs: readonly UpstreamCost[] } {
  const toolCalls = pricedCalls(unpaidCalls, route.cost.tools);
  const usage = { ...NO_USAGE, toolCalls };
  const { amount, snapshot } = charge(route.cost, MULTIPLIER_ONE, usage, tier);
  if (amount === 0n) return { lines: [], costs: [] };
  const memo = memoOf({
    metered: { usage, counted: "upstream" },
    snapshot,
    tier,
    ended: UNPAID_CALLS,
    hold: terms.hold,
    catalog: terms.catalogVersion,
    upstream: route.upstream,
    upstreamModel: route.upstreamModel,
    cost: amount,
  });
  const line = { upstream: route.upstream, cause: UNPAID_CALLS, amount, memo };
  return { lines: [line], costs: [absorbedCost(route, usage, amount)] };
}

/** The cause of an absorbed line for calls of hosted tools that were not asked for, or beyond the maximum. */
const UNPAID_CALLS = "unpaid_tool_calls";

/** What was counted, and its facts for the ledger line. */
type ChargeFacts = Pick<MemoFacts, "metered" | "tier" | "surprises" | "unpaidCalls" | "paid" | "attempts" | "cost"> & {
  /** What the upstream bills beside the answer. */
  readonly others: readonly UpstreamCost[];
};
type Snapped = ChargeFacts & Pick<MemoFacts, "snapshot">;
/** `byClient`: the client has brought it about without leaving. */
type Wasted = Snapped & { readonly byClient?: boolean };

function posted(terms: ChargeTerms, ending: Ending, route: Route, figures: ChargeFacts): SettleAsk {
  const { usage } = figures.metered;
  const { amount: owed, snapshot } = owedFor(terms, figures);
  const amount = isBrokenOff(ending) ? leastNano(owed, terms.hold) : owed;
  const said = memo(terms, ending, { ...figures, snapshot });
  const rest = terms.unmetered ? ZERO : nanoUsd(owed - amount);
  const ask = {
    ...voidOf(terms),
    voided: false,
    amount: terms.unmetered ? ZERO : amount,
    upstream: route.upstream,
    tokensUsed: limitedTokens(terms, usage),
    tokens: tokenSumsOf(usage),
    costs: eachOnce([chargedCost(route, usage, figures.cost), ...figures.others]),
    memo: said,
  };
  // Right after the charge, as where funds do not cover it.
  const line = { upstream: route.upstream, cause: CUT_OVER_HOLD, amount: rest, memo: said };
  return rest === ZERO ? ask : { ...ask, attempts: [line] };
}

/** Whether the upstream or the gateway has ended the reply before its end: its client pays no more than was held for it. */
function isBrokenOff({ complete, stopped, cause }: CutFacts): boolean {
  return !complete && !stopped && cause !== CLIENT_GONE;
}

/** An upstream's final count is owed as it is; what we estimated never costs more than was set aside for it (promise 3). */
function owedFor(terms: ChargeTerms, { metered: { usage, counted }, tier }: ChargeFacts) {
  const { amount, snapshot } = charge(terms.model.price, terms.group.multiplier, usage, tier);
  return { amount: counted === "upstream" ? amount : leastNano(amount, terms.hold), snapshot };
}

/** A count that cannot be is paid for, but it does not shut an account out of its limit for hours. */
function limitedTokens({ model, terms }: ChargeTerms, usage: Usage): number {
  return Math.min(totalInput(usage) + usage.output, model.contextTokens + model.maxOutputTokens * terms.choices);
}

/**
 * Nothing was delivered: the client pays nothing, and what the upstream still costs is named. Where the client has
 * left, the store still charges it once its account has done so too often.
 */
function absorbed(terms: ChargeTerms, ending: Ending, route: Route, all: Wasted): SettleAsk {
  const { byClient: _, ...figures } = all;
  const { metered, cost, others } = figures;
  return {
    ...voidOf(terms),
    absorbed: figures.cost,
    absorbedCause: ending.cause,
    upstream: route.upstream,
    costs: eachOnce([absorbedCost(route, metered.usage, cost), ...others]),
    memo: memo(terms, ending, figures),
    ...leftUnpaid(terms, ending, route, all),
  };
}

type LeftMembers = Pick<SettleAsk, "leftUnpaid" | "tokensUsed" | "tokens">;

/** What the client pays in place of that, the same as if it had left after the first byte. */
function leftUnpaid(terms: ChargeTerms, ending: Ending, route: Route, all: Wasted): Partial<LeftMembers> {
  const { byClient, ...figures } = all;
  const { cause, leftAllowance: allowance } = ending;
  if (allowance === undefined || !(byClient || cause === CLIENT_GONE) || terms.unmetered) return {};
  const { metered, cost, others } = figures;
  const { amount, snapshot } = owedFor(terms, figures);
  if (amount === ZERO) return {};
  const { usage } = metered;
  // Of a reply that had come to its end, too, the client was given nothing.
  const answered = { route, metered, delivered: true, complete: false, cause };
  const notes = accountFor(ending.attempts ?? [], terms, answered).notes;
  const attempts = notes.map((note) =>
    note === notes.at(-1) && note.outcome === cause ? { ...note, paid_by: "client" } : note,
  );
  const said = memo(terms, { ...ending, complete: false }, { ...figures, attempts, snapshot, paid: ALLOWANCE_USED });
  const costs = eachOnce([chargedCost(route, usage, cost), ...others]);
  const tokensUsed = limitedTokens(terms, usage);
  return { leftUnpaid: { allowance, amount, memo: said, costs }, tokensUsed, tokens: tokenSumsOf(usage) };
}

/** Why a client pays for what it was not given. */
const ALLOWANCE_USED = "allowance_used";

function memo(terms: ChargeTerms, ending: Ending, figures: Snapped): string {
  return memoOf({
    ...figures,
    ended: ending.complete ? COMPLETE : ending.cause,
    hold: terms.hold,
    heldDear: terms.heldDear,
    catalog: terms.catalogVersion,
    upstream: ending.route?.upstream,
    upstreamModel: ending.route?.upstreamModel,
    answeredBy: ending.measured.answeredBy,
  });
}

/* Settlements that charge nobody and name no cost: the hold goes back. */

/** A card's group whose request the balance pays for is paid as any other is (docs/money.md). */
function kindOfPayer({ group, entitlement }: ChargeTerms): GroupKind {
  return entitlement === undefined ? "pay_per_use" : group.kind;
}

/** The settlement of a request that never reached an upstream: its hold is given back. */
export function voidOf(terms: ChargeTerms): SettleAsk {
  return {
    requestId: terms.requestId,
    tag: terms.tag,
    admittedAtMs: terms.storeTimeMs,
    group: terms.group.name,
    kind: kindOfPayer(terms),
    entitlement: terms.entitlement,
    counted: terms.counted,
    keyId: terms.keyId,
    perKey: terms.group.limits.perKey,
    model: terms.model.name,
    amount: ZERO,
    absorbed: ZERO,
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: terms.tokensTaken,
    tokensUsed: 0,
    tokensPerMinute: terms.group.limits.tokensPerMinute,
    voided: true,
    memo: "{}",
    idempotency: terms.idempotency,
  };
}

/**
 * Gives up an admission whose outcome is unknown: should the store have carried it out, or still do so, it holds nothing.
 * @param nowMs the time at which the answer failed to come; the store's own is not known.
 */
export function abandoned(
  requestId: RequestId,
  tag: AccountTag,
  inputTokens: number,
  nowMs: number,
  idempotency?: IdempotentRequest | undefined,
): SettleAsk {
  return {
    requestId,
    tag,
    admittedAtMs: nowMs,
    group: "",
    kind: "pay_per_use",
    entitlement: undefined,
    keyId: "",
    perKey: false,
    model: "",
    amount: ZERO,
    absorbed: ZERO,
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: inputTokens,
    tokensUsed: 0,
    tokensPerMinute: undefined,
    voided: true,
    memo: "{}",
    idempotency: idempotency && { ...idempotency, streamed: false, untilMs: nowMs },
  };
}
