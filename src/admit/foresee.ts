/**
 * What the store's admission would decide of a request, from what can be read without changing anything: key, cards, plan,
 * group and funds, in the store's own order (`store/embedded/admit.ts`, `store/redis/lua/admit.lua`). Rates and requests
 * in flight cannot be read so, and are taken to allow it.
 */
import type { AdmitAsk, AdmitRefusalCause, AdmitRefused, Admitted, GroupTerms } from "../store/admission.ts";
import type { Entitlement, KeyView } from "../store/records.ts";
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";

/** What has been read of a key and its account. */
export interface Seen {
  readonly view: KeyView;
  /** What running requests hold of the account's balance. */
  readonly held: NanoUsd;
}

type Funds = Pick<Admitted, "entitlement" | "unmetered" | "hold">;

const NO_LIMITS = { requests: undefined, tokens: undefined };

/** The answer that `Store.admit` would give, but for limits. */
export function foresee(seen: Seen, ask: Pick<AdmitAsk, "plans" | "groups">): Admitted | AdmitRefused {
  const { key, account, storeTimeMs } = seen.view;
  if (key.status === "revoked") return refused("revoked_key", key.group);
  const terms = ask.groups.find(({ group }) => group === key.group);
  const running = runningCards(seen.view);
  if (terms?.kind === "time_card" && !running.some(({ group }) => group === key.group)) {
    return refused("no_entitlement", key.group);
  }
  const plans = [account.plan, ...running.map(({ plan }) => plan)];
  if (!plans.some((plan) => ask.plans.includes(plan))) return refused("not_in_plan", key.group);
  if (terms === undefined) return refused("group_mismatch", key.group);
  const funds = terms.kind === "time_card" ? cardFunds(running, ask.plans, terms) : balanceFunds(seen, terms);
  if (typeof funds === "string") return refused(funds, key.group);
  return {
    outcome: "admitted",
    accountId: account.id,
    keyId: key.id,
    group: key.group,
    ...funds,
    storeTimeMs,
    limits: NO_LIMITS,
  };
}

/** Cards that have begun and not ended, earliest to expire first. */
export function runningCards({ entitlements, storeTimeMs }: KeyView): Entitlement[] {
  return entitlements.filter(({ fromMs, untilMs }) => fromMs <= storeTimeMs && storeTimeMs < untilMs);
}

function cardFunds(
  running: readonly Entitlement[],
  plans: readonly string[],
  terms: GroupTerms,
): Funds | AdmitRefusalCause {
  const listed = running.filter(({ group, plan }) => group === terms.group && plans.includes(plan));
  if (listed.length === 0) return "no_entitlement";
  for (const card of listed) {
    if (card.quota === undefined) return { entitlement: card.id, unmetered: true, hold: ZERO };
    const rest = nanoUsd(card.quota - card.spent - card.held);
    if (rest >= terms.holdMin) {
      return { entitlement: card.id, unmetered: false, hold: leastNano(rest, terms.holdFull) };
    }
  }
  return "quota_used";
}

function balanceFunds({ view, held }: Seen, terms: GroupTerms): Funds | AdmitRefusalCause {
  const free = nanoUsd(view.account.balance - held);
  if (free < terms.holdMin) return "insufficient_balance";
  return { entitlement: undefined, unmetered: false, hold: leastNano(free, terms.holdFull) };
}

function refused(cause: AdmitRefusalCause, group: string): AdmitRefused {
  return { outcome: "refused", cause, group, retryAfterMs: undefined, limits: NO_LIMITS };
}
