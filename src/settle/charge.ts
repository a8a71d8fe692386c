/** What a request costs the client and the operator once it has ended, and who pays: pure arithmetic over the permit. */

import type { ChargeTerms } from "../store/charge-terms.ts";
import type { SettleAsk } from "../store/settlement.ts";
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";
import { charge, MULTIPLIER_ONE } from "../values/price.ts";
import type { UnpaidCalls } from "../values/tokens/tool-calls.ts";
import { NO_USAGE, type Usage } from "../values/tokens/usage.ts";
import { askOf, type BilledTry, type Owed } from "./lines.ts";
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
  type UsedTry,
  usedBy,
} from "./meter.ts";

/** What a request has come to. */
export interface Charge {
  readonly ask: SettleAsk;
  /** Of the answer; undefined where there was none. */
  readonly metered: Metered | undefined;
  /** What the upstream's count says that cannot be. */
  readonly surprises: readonly Surprise[];
  /** Calls of hosted tools that the server counts and nobody is charged for. */
  readonly unpaidCalls: readonly UnpaidCalls[];
}

/** What a running request has used and cost so far, as it would be billed if it were cut here for this cause. */
export function costSoFar(
  terms: ChargeTerms,
  seen: MeasuredReply,
  { cause, pace, tier }: Pick<Ending, "cause" | "pace" | "tier">,
): { readonly usage: Usage; readonly cost: NanoUsd } {
  const usage = meterSoFar(terms, seen, { cause, complete: false, pace });
  return { usage, cost: priceOf(terms, usage, tierCharged(terms, tier)).amount };
}

/** What a client is charged for that usage. */
function priceOf({ model, group }: ChargeTerms, usage: Usage, tier: string | undefined) {
  return charge(model.price, group.multiplier, usage, tier);
}

/**
 * The settlement of a request that reached its end, however it ended: what its tries have used, what that costs, who pays for it,
 * and the lines that say so.
 */
export function settlementOf(terms: ChargeTerms, ending: Ending): Charge {
  const { answer, tries: used, unpaid } = usedBy(terms, ending);
  const answered = answer && billOf(answer);
  const tries = used.map((one) => triedOf(one, answered));
  // Where nobody answered, what its client has wasted stands for an answer that nobody got; no other try follows it.
  const last = tries.at(-1);
  const bill = answered ?? (last && isClientsDoing(last.attempt) ? last.bill : undefined);
  const others = [...tries.map((one) => one.bill), unpaid && billOf(unpaid)].filter(
    (one): one is Bill => one !== undefined && one !== bill && one.cost > ZERO,
  );
  const owed = bill && owedFor(terms, ending, bill);
  const isClients = bill !== undefined && isByClient(ending, bill);
  const ask = askOf(terms, { tries, bill, others, owed, isClients });
  const { surprises = [], unpaidCalls = [], metered } = answer ?? {};
  return { ask, metered, surprises, unpaidCalls };
}

function billOf(used: RouteUse): Bill {
  const { amount: cost, snapshot } = charge(used.route.cost, MULTIPLIER_ONE, used.metered.usage, used.tier);
  return { ...used, cost, snapshot };
}

function triedOf({ attempt, used, why }: UsedTry, answered: Bill | undefined): BilledTry {
  if (attempt.outcome === "ok") return { attempt, bill: answered, why };
  return { attempt, bill: used && billOf(used), why };
}

/**
 * What the client owes. Of what was not delivered it owes nothing; where it has left, the store still charges it once its
 * account has done so too often, the same as if it had left after the first byte.
 */
function owedFor(terms: ChargeTerms, ending: Ending, bill: Bill): Owed | undefined {
  const { metered, tier } = bill;
  const { delivered, leftAllowance: allowance } = ending;
  if (!delivered && (allowance === undefined || !isByClient(ending, bill) || terms.unmetered)) return undefined;
  const { amount: price, snapshot } = priceOf(terms, metered.usage, tier);
  // An upstream's final count is owed as it is; what we estimated never costs more than was set aside for it (ARCHITECTURE.md promise 3).
  const amount = metered.counted === "upstream" ? price : leastNano(price, mostEstimated(terms, bill));
  if (!delivered) return amount === ZERO ? undefined : { amount, snapshot, over: ZERO, allowance };
  if (terms.unmetered) return { amount: ZERO, snapshot, over: ZERO, allowance: undefined };
  const asked = isBrokenOff(ending) ? leastNano(amount, terms.hold) : amount;
  return { amount: asked, snapshot, over: nanoUsd(amount - asked), allowance: undefined };
}

/** What was set aside, and calls beyond those that it was set aside for: they were seen, however the tokens are reckoned. */
function mostEstimated({ hold, model, group }: ChargeTerms, { callsBeyondHold }: RouteUse): NanoUsd {
  if (!callsBeyondHold) return hold;
  return nanoUsd(hold + charge(model.price, group.multiplier, { ...NO_USAGE, toolCalls: callsBeyondHold }).amount);
}

/** Whether the client has brought a bill about by leaving or by what it asked for. What was wasted before there was an answer is its doing always. */
function isByClient({ route, askedFor }: Ending, { ended }: Bill): boolean {
  return route === undefined || askedFor === true || ended === CLIENT_GONE;
}

/** Whether the upstream or the gateway has ended the reply before its end: its client pays no more than was held for it. */
function isBrokenOff({ complete, stopped, cause }: Ending): boolean {
  return !complete && !stopped && cause !== CLIENT_GONE;
}
