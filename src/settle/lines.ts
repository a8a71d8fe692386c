/**
 * What the store is asked to write of a request that has ended: the charge or the hold given back, its lines, and the costs by
 * upstream.
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

/** A try, with what it costs. */
export interface BilledTry {
  readonly attempt: AttemptFacts;
  /** Undefined where it cost nothing. */
  readonly bill: Bill | undefined;
  /** Why that is so, or how an answer ended, as a word for the ledger. */
  readonly why: string;
}

/** What a client owes for a bill, at its own prices. */
export interface Owed {
  readonly amount: NanoUsd;
  readonly snapshot: PriceSnapshot;
  /** What it is not asked for: the part above the hold, of an answer that was broken off. */
  readonly over: NanoUsd;
  /** Set where it was given nothing: what its account may cost in this way before `amount` is charged after all. */
  readonly allowance: NanoUsd | undefined;
}

/** Who pays for what. */
interface Settlement {
  /** Every try, in order. */
  readonly tries: readonly BilledTry[];
  /** The answer, or the try that its client has wasted before there was one; undefined: nobody answered. */
  readonly bill: Bill | undefined;
  /** What no client pays for beside that, each a line of its own: all above 0. */
  readonly others: readonly Bill[];
  /** Undefined where the client is asked for nothing. */
  readonly owed: Owed | undefined;
  /** Whether the bill is the client's doing, so that its tokens count in its limits though nobody pays for them. */
  readonly isClients: boolean;
}

/** The settlement as the store is asked for it. */
export function askOf(terms: ChargeTerms, { tries, bill, others, owed, isClients }: Settlement): SettleAsk {
  const voided = voidOf(terms);
  const beside = others.map((one) => upstreamCost(one, false));
  if (!bill) {
    // No other line of the request has its tries.
    const lines = others.map((one, at) => lineOf(terms, one, at === others.length - 1 ? notesOf(terms, tries) : []));
    return lines.length === 0 ? voided : { ...voided, costs: eachOnce(beside), attempts: lines };
  }
  const lines = others.map((one) => lineOf(terms, one));
  const tokensUsed = limitedTokens(terms, bill.metered.usage);
  if (!owed) {
    const unpaid = absorbed(terms, voided, bill, tries, beside);
    return withLines(isClients ? { ...unpaid, tokensUsed } : unpaid, lines);
  }
  const { heldDear } = terms;
  const { amount, over, allowance } = owed;
  const paid = allowance === undefined ? undefined : ALLOWANCE_USED;
  const memo = memoOf(terms, bill, { prices: owed.snapshot, heldDear, paid, attempts: notesOf(terms, tries, bill) });
  const costs = eachOnce([upstreamCost(bill, true), ...beside]);
  const { upstream } = bill.route;
  const tokens = tokenSumsOf(bill.metered.usage);
  if (allowance !== undefined) {
    const leftUnpaid = { allowance, amount, memo, costs };
    return withLines({ ...absorbed(terms, voided, bill, tries, beside), leftUnpaid, tokensUsed, tokens }, lines);
  }
  // Right after the charge, as where funds do not cover it.
  if (over > ZERO) lines.unshift({ upstream, cause: CUT_OVER_HOLD, amount: over, memo });
  return withLines({ ...voided, voided: false, amount, upstream, tokensUsed, tokens, costs, memo }, lines);
}

/** Why a client pays for what it was not given. */
const ALLOWANCE_USED = "allowance_used";

/** The client pays nothing, and what the upstream still costs is named. */
function absorbed(
  terms: ChargeTerms,
  voided: SettleAsk,
  bill: Bill,
  tries: readonly BilledTry[],
  beside: readonly UpstreamCost[],
): SettleAsk {
  return {
    ...voided,
    absorbed: bill.cost,
    absorbedCause: bill.ended,
    upstream: bill.route.upstream,
    costs: eachOnce([upstreamCost(bill, false), ...beside]),
    memo: memoOf(terms, bill, { heldDear: terms.heldDear, attempts: notesOf(terms, tries) }),
  };
}

function withLines(ask: SettleAsk, attempts: readonly AbsorbedAttempt[]): SettleAsk {
  return attempts.length > 0 ? { ...ask, attempts } : ask;
}

/** A count that cannot be is paid for, but it does not shut an account out of its limit for hours. */
function limitedTokens({ model, terms }: ChargeTerms, usage: Usage): number {
  return Math.min(totalInput(usage) + usage.output, model.contextTokens + model.maxOutputTokens * terms.choices);
}

/** @param attempts of the request, on the line that has them. */
function lineOf(terms: ChargeTerms, bill: Bill, attempts: readonly AttemptNote[] = []): AbsorbedAttempt {
  return {
    upstream: bill.route.upstream,
    cause: bill.ended,
    amount: bill.cost,
    memo: memoOf(terms, bill, { attempts }),
  };
}

/** @param paidBill what the client pays for, if anything. */
function notesOf({ model }: ChargeTerms, tries: readonly BilledTry[], paidBill?: Bill): readonly AttemptNote[] {
  return tries.map((one) => noteOf(one, model.price, paidBill !== undefined && one.bill === paidBill));
}

/**
 * @param price of the model, for its client.
 * @param isPaid whether the client pays for this try.
 */
function noteOf({ attempt, bill, why }: BilledTry, price: Price, isPaid: boolean): AttemptNote {
  const { upstream, model, outcome, status } = attempt;
  const isAnswer = outcome === "ok";
  const unpaid = isAnswer || (bill && bill.cost > ZERO) ? "absorbed" : "nobody";
  // What nobody got is on the line at the route's cost already.
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
 * What a bill costs the operator, by upstream and model: what a vendor's invoice is compared with.
 * @param charged whether a client is charged for it, and may pay less; what no client pays for is an answer that nobody got, a
 * try that failed, calls of tools that were not asked for.
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
 * Adds up what is of the same upstream and model, as a store takes each of them once. What costs nothing and is not charged
 * has no line, and is left out.
 */
export function eachOnce(costs: readonly UpstreamCost[]): readonly UpstreamCost[] {
  // Mostly there is one.
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

/* The hold goes back: nobody is charged, and no cost is named. */

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
