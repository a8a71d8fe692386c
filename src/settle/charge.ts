/** What a finished request costs the client and the operator, and who pays. Pure arithmetic over the charge terms. */

import type { ChargeTerms } from "../store/charge-terms.ts";
import type { SettleAsk } from "../store/settlement.ts";
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";
import { charge, MULTIPLIER_ONE } from "../values/price.ts";
import type { UnpaidCalls } from "../values/tokens/tool-calls.ts";
import { NO_USAGE, type Usage } from "../values/tokens/usage.ts";
import { askOf, type BilledAttempt, type Owed } from "./lines.ts";
import type { Bill } from "./memo.ts";
import {
  CLIENT_GONE,
  type Ending,
  isClientsDoing,
  type MeasuredReply,
  type Metered,
  meterSoFar,
  type RouteUse,
  type Surprise,
  tierCharged,
  type UsedAttempt,
  usedBy,
} from "./meter.ts";

/** The result for a finished request. */
export interface Charge {
  readonly ask: SettleAsk;
  /** Usage of the answer; undefined if there was none. */
  readonly metered: Metered | undefined;
  /** Implausible values in the upstream's count. */
  readonly surprises: readonly Surprise[];
  /** Calls of hosted tools that the upstream counts and no client is charged for. */
  readonly unpaidCalls: readonly UnpaidCalls[];
}

/** Usage and cost of a running request, as it would be billed if it were cut now for this cause. */
export function costSoFar(
  terms: ChargeTerms,
  seen: MeasuredReply,
  { cause, pace, tier }: Pick<Ending, "cause" | "pace" | "tier">,
): { readonly usage: Usage; readonly cost: NanoUsd } {
  const usage = meterSoFar(terms, seen, { cause, complete: false, pace });
  return { usage, cost: priceOf(terms, usage, tierCharged(terms, tier)).amount };
}

/** The client's price for that usage. */
function priceOf({ model, group }: ChargeTerms, usage: Usage, tier: string | undefined) {
  return charge(model.price, group.multiplier, usage, tier);
}

/**
 * The settlement of a request that has ended, for whatever reason: what its attempts used, what that costs, who pays,
 * and the ledger lines for it.
 */
export function settlementOf(terms: ChargeTerms, ending: Ending): Charge {
  const { answer, attempts: used, unpaid } = usedBy(terms, ending);
  const answered = answer && billOf(answer);
  const attempts = used.map((one) => billedAttempt(one, answered));
  // If no upstream answered, an attempt that the client wasted is billed like an undelivered answer. No other attempt
  // follows it.
  const last = attempts.at(-1);
  const bill = answered ?? (last && isClientsDoing(last.attempt) ? last.bill : undefined);
  const others = [...attempts.map((one) => one.bill), unpaid && billOf(unpaid)].filter(
    (one): one is Bill => one !== undefined && one !== bill && one.cost > ZERO,
  );
  const owed = bill && owedFor(terms, ending, bill);
  const isClients = bill !== undefined && isByClient(ending, bill);
  const ask = askOf(terms, { attempts, bill, others, owed, isClients });
  const { surprises = [], unpaidCalls = [], metered } = answer ?? {};
  return { ask, metered, surprises, unpaidCalls };
}

function billOf(used: RouteUse): Bill {
  const { amount: cost, snapshot } = charge(used.route.cost, MULTIPLIER_ONE, used.metered.usage, used.tier);
  return { ...used, cost, snapshot };
}

function billedAttempt({ attempt, used, why }: UsedAttempt, answered: Bill | undefined): BilledAttempt {
  if (attempt.outcome === "ok") return { attempt, bill: answered, why };
  return { attempt, bill: used && billOf(used), why };
}

/**
 * What the client owes. It owes nothing for what was not delivered. Exception: if the client disconnected and its
 * account has used up its allowance for that, the store charges it as if it had disconnected after the first byte.
 */
function owedFor(terms: ChargeTerms, ending: Ending, bill: Bill): Owed | undefined {
  const { metered, tier } = bill;
  const { delivered, leftAllowance: allowance } = ending;
  if (!delivered && (allowance === undefined || !isByClient(ending, bill) || terms.unmetered)) return undefined;
  const { amount: price, snapshot } = priceOf(terms, metered.usage, tier);
  // An upstream's final count is owed in full. Our own estimate never costs more than was held for it (ARCHITECTURE.md
  // promise 3).
  const amount = metered.counted === "upstream" ? price : leastNano(price, mostEstimated(terms, bill));
  if (!delivered) return amount === ZERO ? undefined : { amount, snapshot, over: ZERO, allowance };
  if (terms.unmetered) return { amount: ZERO, snapshot, over: ZERO, allowance: undefined };
  const asked = isBrokenOff(ending) ? leastNano(amount, terms.hold) : amount;
  return { amount: asked, snapshot, over: nanoUsd(amount - asked), allowance: undefined };
}

/**
 * The hold, plus the tool calls beyond those that it covers: these calls were seen, so they do not depend on the token
 * estimate.
 */
function mostEstimated({ hold, model, group }: ChargeTerms, { callsBeyondHold }: RouteUse): NanoUsd {
  if (!callsBeyondHold) return hold;
  return nanoUsd(hold + charge(model.price, group.multiplier, { ...NO_USAGE, toolCalls: callsBeyondHold }).amount);
}

/**
 * Whether the client caused the bill, by disconnecting or by what it asked for. What was wasted before there was an
 * answer is always caused by the client.
 */
function isByClient({ route, askedFor }: Ending, { ended }: Bill): boolean {
  return route === undefined || askedFor === true || ended === CLIENT_GONE;
}

/** Whether the upstream or the gateway cut the reply short. The client then pays no more than the hold. */
function isBrokenOff({ complete, stopped, cause }: Ending): boolean {
  return !complete && !stopped && cause !== CLIENT_GONE;
}
