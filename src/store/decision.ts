/**
 * The one decision on admission: may this request run, who pays, how much is held. Pure: the embedded store decides by it
 * and writes what it says, `explain` and the list of models ask it what would be decided. `redis/lua/admit.lua` is its only
 * twin, step by step.
 */
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";
import type {
  AdmitAsk,
  AdmitRefusalCause,
  AdmitRefused,
  Admitted,
  GroupTerms,
  KeyRefusalCause,
  LimitStates,
} from "./admission.ts";
import { type Bucket, bucketState, drain, isHeldDear, type LimitUsage, take, waitMs } from "./buckets.ts";
import { limitScope, requestBucket, tokenBucket } from "./names.ts";
import type { Account, Entitlement, Key } from "./records.ts";
import { ACCOUNT_CONCURRENCY_MAX } from "./settlement.ts";

/** What a decision is taken by, all of one instant. */
export interface AccountStanding {
  readonly key: Pick<Key, "id" | "group" | "status" | "expiresAtMs">;
  /** The account's plan. */
  readonly plan: string;
  /** Cards that run now, earliest to expire first. */
  readonly running: readonly Entitlement[];
  /** What of the balance no running request holds. */
  readonly free: NanoUsd;
  /** How much of a scope's limits is used; undefined: not read, and taken to allow it. */
  readonly limits: (scope: string) => Omit<LimitUsage, "overrun" | "storeTimeMs"> | undefined;
  /** How often charges were above their holds lately. */
  readonly overrun: Bucket | undefined;
  readonly nowMs: number;
}

/** The request may run. */
export interface Granted extends Pick<Admitted, "entitlement" | "unmetered" | "hold" | "free" | "limits"> {
  readonly outcome: "granted";
  readonly scope: string;
  readonly dear: boolean;
}

interface Decision {
  readonly answer: Granted | AdmitRefused;
  /** Buckets that have changed, also where the request is refused: what the request bucket has counted stays. */
  readonly buckets: readonly (readonly [name: string, bucket: Bucket])[];
}

export const NO_LIMITS: LimitStates = Object.freeze({ requests: undefined, tokens: undefined });

/** Decides, in the order of docs/errors.md: key, card, plan, group, funds, limits. */
export function decide(
  ask: Pick<AdmitAsk, "plans" | "groups" | "inputTokens" | "again">,
  standing: AccountStanding,
): Decision {
  const { key, running, overrun, nowMs } = standing;
  const barredKey = keyBarredBy(key, nowMs);
  if (barredKey !== undefined) return refusedBy(barredKey, standing);
  const offered = ask.groups.find(({ group }) => group === key.group);
  const barred = barredBy(ask.plans, offered?.kind, standing);
  if (barred !== undefined || offered === undefined) return refusedBy(barred ?? "group_mismatch", standing);
  const dear = isHeldDear(overrun, nowMs) ? offered.dear : undefined;
  const terms = { ...offered, ...dear };
  const funds = terms.kind === "time_card" ? cardFunds(running, ask.plans, terms) : balanceFunds(standing.free, terms);
  if (typeof funds === "string") return refusedBy(funds, standing);
  return withinLimits(ask, terms, { ...funds, dear: dear !== undefined }, standing);
}

/** How a key stands that has this status itself, in an account of that one. `redis/lua/key.lua` decides the same. */
export function standingOfKey(own: Key["status"], account: Account["status"]): Key["status"] {
  if (account === "closed") return "revoked";
  return own === "normal" ? account : own;
}

/** Why a key that the store has is refused; undefined for a good one. `redis/lua/key.lua` decides the same. */
export function keyBarredBy(
  { status, expiresAtMs }: Pick<Key, "status" | "expiresAtMs">,
  nowMs: number,
): KeyRefusalCause | undefined {
  if (status === "revoked") return "revoked_key";
  if (status === "suspended") return "suspended";
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? "expired_key" : undefined;
}

/**
 * Whether card, plan or group forbid a model, its price aside.
 * @param plans that list the model.
 * @param kind of the key's group; undefined where the group does not serve the model.
 */
export function barredBy(
  plans: readonly string[],
  kind: GroupTerms["kind"] | undefined,
  { key, plan, running }: Pick<AccountStanding, "key" | "plan" | "running">,
): "no_entitlement" | "not_in_plan" | "group_mismatch" | undefined {
  if (kind === "time_card" && !running.some(({ group }) => group === key.group)) return "no_entitlement";
  // The plans of all running cards count, also of cards of another group.
  if (!plans.includes(plan) && !running.some((card) => plans.includes(card.plan))) return "not_in_plan";
  return kind === undefined ? "group_mismatch" : undefined;
}

/** Cards that have begun and not ended at this time, in the order in which they are given. */
export function runningCards(cards: readonly Entitlement[], nowMs: number): Entitlement[] {
  return cards.filter(({ fromMs, untilMs }) => fromMs <= nowMs && nowMs < untilMs);
}

type Funds = Pick<Granted, "entitlement" | "unmetered" | "hold" | "free">;

/** The earliest card to expire of the key's group whose plan lists the model and whose rest covers the least hold. */
function cardFunds(
  running: readonly Entitlement[],
  plans: readonly string[],
  terms: GroupTerms,
): Funds | AdmitRefusalCause {
  const listed = running.filter(({ group, plan }) => group === terms.group && plans.includes(plan));
  if (listed.length === 0) return "no_entitlement";
  for (const { id, quota, spent, held } of listed) {
    if (quota === undefined) return { entitlement: id, unmetered: true, hold: ZERO };
    const rest = nanoUsd(quota - spent - held);
    if (rest >= terms.holdMin) return { entitlement: id, unmetered: false, ...heldOf(rest, terms) };
  }
  return "quota_used";
}

function balanceFunds(free: NanoUsd, terms: GroupTerms): Funds | AdmitRefusalCause {
  if (free < terms.holdMin) return "insufficient_balance";
  return { entitlement: undefined, unmetered: false, ...heldOf(free, terms) };
}

function heldOf(available: NanoUsd, { holdFull }: GroupTerms): Pick<Granted, "hold" | "free"> {
  const hold = leastNano(available, holdFull);
  return { hold, free: nanoUsd(available - hold) };
}

function withinLimits(
  { inputTokens, again }: Pick<AdmitAsk, "inputTokens" | "again">,
  { requestsPerMinute, tokensPerMinute, concurrency, perKey }: GroupTerms,
  funds: Funds & Pick<Granted, "dear">,
  standing: AccountStanding,
): Decision {
  const { key, nowMs } = standing;
  const scope = limitScope(key.group, key.id, perKey);
  const usage = standing.limits(scope);
  if (!usage) return { answer: { outcome: "granted", scope, ...funds, limits: NO_LIMITS }, buckets: [] };
  let requests = requestsPerMinute === undefined ? undefined : drain(usage.requests, requestsPerMinute, nowMs);
  let tokens = tokensPerMinute === undefined ? undefined : drain(usage.tokens, tokensPerMinute, nowMs);
  const buckets: [string, Bucket][] = [];
  const limits = (): LimitStates => ({
    requests: requests && bucketState(requests, requestsPerMinute as number, nowMs),
    tokens: tokens && bucketState(tokens, tokensPerMinute as number, nowMs),
  });
  const refused = (cause: AdmitRefusalCause, retryAfterMs?: number): Decision => ({
    answer: { outcome: "refused", cause, group: key.group, retryAfterMs, limits: limits() },
    buckets,
  });
  if (requests && !again) {
    const wait = waitMs(requests, requestsPerMinute as number, 1, nowMs);
    if (wait > 0) return refused("requests", wait);
    requests = take(requests, 1);
    buckets.push([requestBucket(scope), requests]);
  }
  const wait = tokens ? waitMs(tokens, tokensPerMinute as number, inputTokens, nowMs) : 0;
  if (wait > 0) return refused("tokens", wait);
  if (usage.inFlight >= concurrency || usage.inFlightOfAccount >= ACCOUNT_CONCURRENCY_MAX)
    return refused("concurrency");
  if (tokens) {
    tokens = take(tokens, inputTokens);
    buckets.push([tokenBucket(scope), tokens]);
  }
  return { answer: { outcome: "granted", scope, ...funds, limits: limits() }, buckets };
}

function refusedBy(cause: AdmitRefusalCause, { key }: AccountStanding): Decision {
  const answer = { outcome: "refused", cause, group: key.group, retryAfterMs: undefined, limits: NO_LIMITS } as const;
  return { answer, buckets: [] };
}
