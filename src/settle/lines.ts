/**
 * What the store is asked to write for a finished request: the charge or the release of the hold, its lines, and costs
 * by upstream.
 */

import type { ChargeTerms } from "../store/charge-terms.ts";
import { type AbsorbedAttempt, CUT_OVER_HOLD, type SettleAsk, type UpstreamCost } from "../store/settlement.ts";
import { addTokens, requestsOf, tokenSumsOf } from "../store/sums/token-sums.ts";
import type { GroupKind } from "../values/catalog.ts";
import type { IdempotentRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import { leastNano, NANO_USD_MAX, type NanoUsd, ZERO } from "../values/money.ts";
import type { Price, PriceSnapshot } from "../values/price.ts";
import type { RequestId } from "../values/request-id.ts";
import { totalInput, type Usage } from "../values/tokens/usage.ts";
import { type AttemptNote, type Bill, memoOf } from "./memo.ts";
import type { AttemptFacts } from "./meter.ts";

/** An attempt, with its cost. */
export interface BilledAttempt {
  readonly attempt: AttemptFacts;
  /** Undefined if it cost nothing. */
  readonly bill: Bill | undefined;
  /** A word for the ledger: why the attempt is billed or not, or how the answer ended. */
  readonly why: string;
}

/** What a client owes for a bill, at the client's prices. */
export interface Owed {
  readonly amount: NanoUsd;
  readonly snapshot: PriceSnapshot;
  /** The part that the client does not pay: what a broken-off answer costs above the hold. */
  readonly over: NanoUsd;
  /** Set if nothing was delivered: what its account may cost in this way before `amount` is charged after all. */
  readonly allowance: NanoUsd | undefined;
}

/** Who pays for what. */
interface Settlement {
  /** Every attempt, in order. */
  readonly attempts: readonly BilledAttempt[];
  /** The answer, or the attempt that the client wasted before there was one. Undefined: neither. */
  readonly bill: Bill | undefined;
  /** Other costs, which no client pays: each has a line of its own and is above 0. */
  readonly others: readonly Bill[];
  /** Undefined if the client pays nothing. */
  readonly owed: Owed | undefined;
  /** Whether the client caused the bill. Its tokens then count toward its limits even if they are absorbed. */
  readonly isClients: boolean;
}

/** Converts the settlement to the request that the store gets. */
export function askOf(terms: ChargeTerms, { attempts, bill, others, owed, isClients }: Settlement): SettleAsk {
  const voided = voidOf(terms);
  const beside = others.map((one) => upstreamCost(one, false));
  if (!bill) {
    // No other line of the request lists its attempts.
    const lines = others.map((one, at) => lineOf(terms, one, at === others.length - 1 ? notesOf(terms, attempts) : []));
    return lines.length === 0 ? voided : { ...voided, costs: eachOnce(beside), attempts: lines };
  }
  const lines = others.map((one) => lineOf(terms, one));
  const tokensUsed = limitedTokens(terms, bill.metered.usage);
  if (!owed) {
    const unpaid = absorbed(terms, voided, bill, attempts, beside);
    return withLines(isClients ? { ...unpaid, tokensUsed } : unpaid, lines);
  }
  const { heldWorstCase } = terms;
  const { amount, over, allowance } = owed;
  const paid = allowance === undefined ? undefined : ALLOWANCE_USED;
  const memo = memoOf(terms, bill, {
    prices: owed.snapshot,
    heldWorstCase,
    paid,
    attempts: notesOf(terms, attempts, bill),
  });
  const costs = eachOnce([upstreamCost(bill, true), ...beside]);
  const { upstream } = bill.route;
  const tokens = tokenSumsOf(bill.metered.usage);
  if (allowance !== undefined) {
    const leftUnpaid = { allowance, amount, memo, costs };
    return withLines({ ...absorbed(terms, voided, bill, attempts, beside), leftUnpaid, tokensUsed, tokens }, lines);
  }
  // Right after the charge, as when funds do not cover it.
  if (over > ZERO) lines.unshift({ upstream, cause: CUT_OVER_HOLD, amount: over, memo });
  return withLines({ ...voided, voided: false, amount, upstream, tokensUsed, tokens, costs, memo }, lines);
}

/** Why a client pays for what was not delivered. */
const ALLOWANCE_USED = "allowance_used";

/** The client pays nothing; the upstream's cost is recorded as absorbed. */
function absorbed(
  terms: ChargeTerms,
  voided: SettleAsk,
  bill: Bill,
  attempts: readonly BilledAttempt[],
  beside: readonly UpstreamCost[],
): SettleAsk {
  return {
    ...voided,
    absorbed: bill.cost,
    absorbedCause: bill.ended,
    upstream: bill.route.upstream,
    costs: eachOnce([upstreamCost(bill, false), ...beside]),
    memo: memoOf(terms, bill, { heldWorstCase: terms.heldWorstCase, attempts: notesOf(terms, attempts) }),
  };
}

function withLines(ask: SettleAsk, attempts: readonly AbsorbedAttempt[]): SettleAsk {
  return attempts.length > 0 ? { ...ask, attempts } : ask;
}

/** Bounded: an implausible count is charged in full, but it must not block the account at its token limit for hours. */
function limitedTokens({ model, terms }: ChargeTerms, usage: Usage): number {
  return Math.min(totalInput(usage) + usage.output, model.contextTokens + model.maxOutputTokens * terms.choices);
}

/** @param attempts all attempts of the request, for the one line that lists them. */
function lineOf(terms: ChargeTerms, bill: Bill, attempts: readonly AttemptNote[] = []): AbsorbedAttempt {
  return {
    upstream: bill.route.upstream,
    cause: bill.ended,
    amount: bill.cost,
    memo: memoOf(terms, bill, { attempts }),
  };
}

/** @param paidBill what the client pays for, if anything. */
function notesOf({ model }: ChargeTerms, attempts: readonly BilledAttempt[], paidBill?: Bill): readonly AttemptNote[] {
  return attempts.map((one) => noteOf(one, model.price, paidBill !== undefined && one.bill === paidBill));
}

/**
 * @param price of the model, for its client.
 * @param isPaid whether the client pays for this attempt.
 */
function noteOf({ attempt, bill, why }: BilledAttempt, price: Price, isPaid: boolean): AttemptNote {
  const { upstream, model, outcome, status } = attempt;
  const isAnswer = outcome === "ok";
  const unpaid = isAnswer || (bill && bill.cost > ZERO) ? "absorbed" : "nobody";
  // The line of an undelivered answer is at the route's cost prices already.
  const prices = isPaid && isAnswer && bill?.route.cost !== price ? bill?.snapshot : undefined;
  return {
    upstream,
    model,
    outcome,
    status,
    input: bill ? totalInput(bill.metered.usage) : 0,
    output: bill?.metered.usage.output ?? 0,
    counted: bill?.metered.counted ?? "none",
    cost: bill?.cost ?? ZERO,
    paid_by: isPaid ? "client" : unpaid,
    why,
    costPrices: prices,
  };
}

/**
 * What a bill costs the operator, by upstream and model, for comparison with a vendor's invoice.
 * @param charged whether a client is charged for it; the client may pay less than the cost. No client pays for an
 * undelivered answer, a failed attempt, or tool calls that were not asked for.
 */
export function upstreamCost(
  { route, metered, cost }: Pick<Bill, "route" | "metered" | "cost">,
  charged: boolean,
): UpstreamCost {
  const tokens = tokenSumsOf(metered.usage);
  return {
    upstream: route.upstream,
    model: route.upstreamModel,
    requests: charged ? 1 : requestsOf(tokens),
    tokens,
    cost,
    absorbed: charged ? ZERO : cost,
    charged,
  };
}

/**
 * Adds up the costs of the same upstream and model, because a store takes each pair once. What costs nothing and is not
 * charged has no line and is left out.
 */
export function eachOnce(costs: readonly UpstreamCost[]): readonly UpstreamCost[] {
  // Usually there is one.
  const [only] = costs;
  if (only?.charged && costs.length === 1) return costs;
  const sums = new Map<string, UpstreamCost>();
  for (const one of costs) {
    if (one.cost === 0n && !one.charged) continue;
    const name = `${one.upstream}|${one.model}`;
    const before = sums.get(name);
    sums.set(name, before ? added(before, one) : one);
  }
  return [...sums.values()];
}

function added(a: UpstreamCost, b: UpstreamCost): UpstreamCost {
  return {
    ...a,
    requests: a.requests + b.requests,
    tokens: addTokens(a.tokens, b.tokens),
    cost: sum(a.cost, b.cost),
    absorbed: sum(a.absorbed, b.absorbed),
    charged: a.charged || b.charged,
  };
}

function sum(a: NanoUsd, b: NanoUsd): NanoUsd {
  return leastNano((a + b) as NanoUsd, NANO_USD_MAX);
}

/* The hold is released: nothing is charged and no cost is recorded. */

/** If the balance pays for a request of a time-card group, the request counts as pay-per-use (docs/money.md). */
function kindOfPayer({ group, entitlement }: ChargeTerms): GroupKind {
  return entitlement === undefined ? "pay_per_use" : group.kind;
}

/** The settlement of a request that never reached an upstream: its hold is released. */
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
 * Gives up an admission whose outcome is unknown. If the store has carried it out, or does so later, its hold is
 * released.
 * @param nowMs when the wait for the answer failed; the store's own time is not known.
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
