/**
 * What the store's admission would decide of a request, from what can be read without changing anything: key, cards, plan,
 * group, funds and limits, in the store's own order (`store/embedded/admit.ts`, `store/redis/lua/admit.lua`).
 */
import type {
  AdmitAsk,
  AdmitRefusalCause,
  AdmitRefused,
  Admitted,
  GroupTerms,
  LimitStates,
} from "../store/admission.ts";
import { bucketState, drain, type LimitUsage, take, waitMs } from "../store/buckets.ts";
import type { Entitlement, KeyView } from "../store/records.ts";
import { ACCOUNT_CONCURRENCY_MAX } from "../store/settlement.ts";
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";

/** What has been read of a key and its account. */
export interface Seen {
  readonly view: KeyView;
  /** What running requests hold of the account's balance. */
  readonly held: NanoUsd;
  /** The limits of the key's scope; undefined: not read, and taken to allow it. */
  readonly limits?: LimitUsage | undefined;
}

type Funds = Pick<Admitted, "entitlement" | "unmetered" | "hold" | "free">;

const NO_LIMITS: LimitStates = { requests: undefined, tokens: undefined };

/** The answer that `Store.admit` would give. */
export function foresee(seen: Seen, ask: Pick<AdmitAsk, "plans" | "groups" | "inputTokens">): Admitted | AdmitRefused {
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
  const limited = seen.limits && withinLimits(seen.limits, terms, ask.inputTokens);
  if (limited?.cause) {
    return { outcome: "refused", group: key.group, retryAfterMs: undefined, ...limited, cause: limited.cause };
  }
  return {
    outcome: "admitted",
    accountId: account.id,
    keyId: key.id,
    group: key.group,
    ...funds,
    storeTimeMs,
    limits: limited?.limits ?? NO_LIMITS,
  };
}

/** What the limits say of a request, and where they would stand behind it. */
function withinLimits(
  usage: LimitUsage,
  { requestsPerMinute, tokensPerMinute, concurrency }: GroupTerms,
  inputTokens: number,
): { readonly cause?: "requests" | "tokens" | "concurrency"; retryAfterMs?: number; readonly limits: LimitStates } {
  const nowMs = usage.storeTimeMs;
  let requests = requestsPerMinute === undefined ? undefined : drain(usage.requests, requestsPerMinute, nowMs);
  let tokens = tokensPerMinute === undefined ? undefined : drain(usage.tokens, tokensPerMinute, nowMs);
  const limits = (): LimitStates => ({
    requests: requests && bucketState(requests, requestsPerMinute as number, nowMs),
    tokens: tokens && bucketState(tokens, tokensPerMinute as number, nowMs),
  });
  const forRequest = requests ? waitMs(requests, requestsPerMinute as number, 1, nowMs) : 0;
  if (forRequest > 0) return { cause: "requests", retryAfterMs: forRequest, limits: limits() };
  requests = requests && take(requests, 1);
  const forTokens = tokens ? waitMs(tokens, tokensPerMinute as number, inputTokens, nowMs) : 0;
  if (forTokens > 0) return { cause: "tokens", retryAfterMs: forTokens, limits: limits() };
  if (usage.inFlight >= concurrency || usage.inFlightOfAccount >= ACCOUNT_CONCURRENCY_MAX) {
    return { cause: "concurrency", limits: limits() };
  }
  tokens = tokens && take(tokens, inputTokens);
  return { limits: limits() };
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
      return { entitlement: card.id, unmetered: false, ...heldOf(rest, terms) };
    }
  }
  return "quota_used";
}

function balanceFunds({ view, held }: Seen, terms: GroupTerms): Funds | AdmitRefusalCause {
  const free = nanoUsd(view.account.balance - held);
  if (free < terms.holdMin) return "insufficient_balance";
  return { entitlement: undefined, unmetered: false, ...heldOf(free, terms) };
}

function heldOf(available: NanoUsd, { holdFull }: GroupTerms): Pick<Admitted, "hold" | "free"> {
  const hold = leastNano(available, holdFull);
  return { hold, free: nanoUsd(available - hold) };
}

function refused(cause: AdmitRefusalCause, group: string): AdmitRefused {
  return { outcome: "refused", cause, group, retryAfterMs: undefined, limits: NO_LIMITS };
}
