/**
 * The only decision about admission: may this request run, who pays, and how much is held. It is pure. The embedded
 * store decides by it and writes the result; `explain` and the list of models ask it what would be decided.
 * `redis/lua/admit.lua` is its only counterpart, step by step.
 */
import { leastNano, type NanoUsd, nanoUsd, ZERO } from "../values/money.ts";
import type {
  AdmitAsk,
  AdmitRefusalCause,
  AdmitRefused,
  Admitted,
  BucketState,
  GroupTerms,
  KeyRefusalCause,
  LimitStates,
} from "./admission.ts";
import { type Bucket, bucketState, drain, type LimitUsage, needsWorstCaseHold, take, waitMs } from "./buckets.ts";
import {
  asOfNow,
  type BudgetCounts,
  type BudgetName,
  budgetField,
  countedText,
  periodEndMs,
  periodOf,
} from "./limits/budgets.ts";
import {
  allowsAddress,
  allowsModel,
  BUDGET_SPANS,
  type LimitSet,
  NO_LIMITS_SET,
  readLimitsText,
  strictest,
} from "./limits/limits.ts";
import { keyScope, limitScope, requestBucket, tokenBucket } from "./names.ts";
import type { Account, Entitlement, Key } from "./records.ts";
import { ACCOUNT_CONCURRENCY_MAX } from "./settlement.ts";

/** The facts of a decision, all of one instant. */
export interface AdmissionFacts {
  readonly key: Pick<Key, "id" | "group" | "status" | "expiresAtMs" | "limits" | "caps">;
  /** The account's plan. */
  readonly plan: string;
  /** Cards that are running now, earliest to expire first. */
  readonly running: readonly Entitlement[];
  /** The part of the balance that no running request holds. */
  readonly free: NanoUsd;
  /** Limits of the account, a text of `limits.ts`. */
  readonly accountLimits: string;
  /** The figures of a budget, by `budgetField`; undefined: nothing was ever spent of it. */
  readonly budget: (field: string) => BudgetCounts | undefined;
  /** Usage of the limits of a scope; undefined: not read, and the decision assumes that it allows the request. */
  readonly limits: (scope: string) => Omit<LimitUsage, "overrun" | "storeTimeMs"> | undefined;
  /** Requests in flight of the key itself. */
  readonly inFlightOfKey: number;
  /** How often charges recently exceeded their holds and funds. */
  readonly overrun: Bucket | undefined;
  readonly nowMs: number;
}

/** The request may run. */
export interface Granted extends Pick<Admitted, "entitlement" | "unmetered" | "hold" | "free" | "limits" | "counted"> {
  readonly outcome: "granted";
  readonly scope: string;
  readonly worstCase: boolean;
  /** Budgets that the request holds of, each moved on to the current period. */
  readonly budgets: readonly OpenBudget[];
}

/** A budget as a request finds it. */
interface OpenBudget {
  readonly name: BudgetName;
  readonly field: string;
  readonly counts: BudgetCounts;
  readonly limit: NanoUsd;
}

interface Decision {
  readonly answer: Granted | AdmitRefused;
  /**
   * Buckets that have changed. A refused request has some too, because the request bucket keeps what it has counted.
   */
  readonly buckets: readonly (readonly [name: string, bucket: Bucket])[];
}

export const NO_LIMITS: LimitStates = Object.freeze({ requests: undefined, tokens: undefined });

/** Decides, in the order of docs/errors.md: key, card, plan, group, models, funds, budgets, limits. */
export function decide(
  ask: Pick<AdmitAsk, "plans" | "groups" | "inputTokens" | "again" | "model"> & {
    readonly address: string | undefined;
  },
  facts: AdmissionFacts,
): Decision {
  const { key, overrun, nowMs } = facts;
  const keyCause = keyRefusal(key, nowMs) ?? addressRefusal(key, ask.address);
  if (keyCause !== undefined) return refusedBy(keyCause, facts);
  const offered = ask.groups.find(({ group }) => group === key.group);
  const modelCause = modelRefusal(ask.plans, offered, facts);
  if (modelCause !== undefined || offered === undefined) return refusedBy(modelCause ?? "group_mismatch", facts);
  if (!keyAllows(key, ask.model)) return refusedBy("model_not_allowed", facts);
  const worstCase = needsWorstCaseHold(overrun, nowMs) ? offered.worstCase : undefined;
  const terms = worstCase ? { ...offered, ...worstCase } : offered;
  const payer = payerOf(ask.plans, terms, facts);
  if (typeof payer === "string") return refusedBy(payer, facts);
  const budgets = payer.unmetered ? [] : openBudgets(facts);
  const short = budgets.find((budget) => restOf(budget) < terms.holdMin);
  if (short) return refusedForBudget(short, facts);
  return withinLimits(ask, terms, fundsOf(payer, budgets, terms, worstCase !== undefined), facts);
}

const NO_SETS: readonly LimitSet[] = [];

/** Both sets of a key's limits; none if it has neither. */
function limitsOf({ limits, caps }: Pick<Key, "limits" | "caps">): readonly LimitSet[] {
  return limits === "" && caps === "" ? NO_SETS : [readLimitsText(limits), readLimitsText(caps)];
}

/** The effective status of a key, from its own status and that of its account. `redis/lua/key.lua` decides the same. */
export function effectiveKeyStatus(own: Key["status"], account: Account["status"]): Key["status"] {
  if (account === "closed") return "revoked";
  return own === "normal" ? account : own;
}

/** Why a known key is refused; undefined for a good one. `redis/lua/key.lua` decides the same. */
export function keyRefusal(
  { status, expiresAtMs }: Pick<Key, "status" | "expiresAtMs">,
  nowMs: number,
): KeyRefusalCause | undefined {
  if (status === "revoked") return "revoked_key";
  if (status === "suspended") return "suspended";
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? "expired_key" : undefined;
}

/** The same for the address that a key is used from. @param address as bits; undefined: no client is involved. */
export function addressRefusal(
  key: Pick<Key, "limits" | "caps">,
  address: string | undefined,
): KeyRefusalCause | undefined {
  if (address === undefined) return undefined;
  return limitsOf(key).every((limits) => allowsAddress(limits, address)) ? undefined : "address_not_allowed";
}

/**
 * Whether card, plan or group forbid a model, apart from its price.
 * @param plans that list the model.
 * @param offered what the key's group offers; undefined when the group does not serve the model.
 */
export function modelRefusal(
  plans: readonly string[],
  offered: Pick<GroupTerms, "kind" | "fallback"> | undefined,
  { key, plan, running }: Pick<AdmissionFacts, "plan" | "running"> & { readonly key: Pick<Key, "group"> },
): "no_entitlement" | "not_in_plan" | "group_mismatch" | undefined {
  const needsCard = offered?.kind === "time_card" && !offered.fallback;
  if (needsCard && !running.some(({ group }) => group === key.group)) return "no_entitlement";
  // The plans of all running cards count, including cards of another group.
  if (!plans.includes(plan) && !running.some((card) => plans.includes(card.plan))) return "not_in_plan";
  return offered === undefined ? "group_mismatch" : undefined;
}

/** Whether a key's own limits allow a model, apart from its group and plans. */
export function keyAllows(key: Pick<Key, "limits" | "caps">, model: string): boolean {
  return limitsOf(key).every((limits) => allowsModel(limits, model));
}

/** Cards that have begun and not ended at this time, in the order given. */
export function runningCards(cards: readonly Entitlement[], nowMs: number): Entitlement[] {
  return cards.filter(({ fromMs, untilMs }) => fromMs <= nowMs && nowMs < untilMs);
}

/** Who pays, and the funds for this request and others. Nothing is held of a card without quota. */
interface Payer {
  readonly entitlement: string | undefined;
  readonly unmetered: boolean;
  readonly rest: NanoUsd;
}

function payerOf(
  plans: readonly string[],
  terms: GroupTerms,
  { running, free }: AdmissionFacts,
): Payer | AdmitRefusalCause {
  const card = terms.kind === "time_card" ? cardThatPays(running, plans, terms) : undefined;
  if (card !== undefined && (typeof card !== "string" || !terms.fallback)) return card;
  return free < terms.holdMin ? "insufficient_balance" : { entitlement: undefined, unmetered: false, rest: free };
}

/** Of the cards of the key's group whose plan lists the model, the earliest to expire whose rest covers holdMin. */
function cardThatPays(
  running: readonly Entitlement[],
  plans: readonly string[],
  terms: GroupTerms,
): Payer | AdmitRefusalCause {
  const listed = running.filter(({ group, plan }) => group === terms.group && plans.includes(plan));
  if (listed.length === 0) return "no_entitlement";
  for (const { id, quota, spent, held } of listed) {
    if (quota === undefined) return { entitlement: id, unmetered: true, rest: ZERO };
    const rest = nanoUsd(quota - spent - held);
    if (rest >= terms.holdMin) return { entitlement: id, unmetered: false, rest };
  }
  return "quota_used";
}

/** What is held: as much as the payer and every budget allow. */
function fundsOf(
  { entitlement, unmetered, rest }: Payer,
  budgets: readonly OpenBudget[],
  { holdFull }: GroupTerms,
  worstCase: boolean,
): Funds {
  if (unmetered) return { entitlement, unmetered, hold: ZERO, free: undefined, worstCase, budgets };
  let available = rest;
  for (const budget of budgets) available = leastNano(available, restOf(budget));
  const hold = leastNano(available, holdFull);
  return { entitlement, unmetered, hold, free: nanoUsd(available - hold), worstCase, budgets };
}

/** The current budgets of the key and of its account: the key's first, the shortest span first. */
function openBudgets({ key, accountLimits, budget, nowMs }: AdmissionFacts): readonly OpenBudget[] {
  if (key.limits === "" && key.caps === "" && accountLimits === "") return [];
  const ofKey = strictest(limitsOf(key)).budgets;
  const ofAccount = readLimitsText(accountLimits).budgets;
  const open = (name: BudgetName, limit: NanoUsd | undefined): OpenBudget[] => {
    if (limit === undefined) return [];
    const field = budgetField(name, key.id);
    return [{ name, field, limit, counts: asOfNow(budget(field), periodOf(name.span, nowMs)) }];
  };
  return [
    ...BUDGET_SPANS.flatMap((span) => open({ span, ofAccount: false }, ofKey?.[span])),
    ...BUDGET_SPANS.flatMap((span) => open({ span, ofAccount: true }, ofAccount?.[span])),
  ];
}

/**
 * What is left. It is zero, not negative, when the budget was lowered below its spending, so that free requests still
 * pass.
 */
function restOf({ limit, counts: { now } }: OpenBudget): NanoUsd {
  const rest = limit - now.spent - now.held;
  return rest > 0n ? nanoUsd(rest) : ZERO;
}

function refusedForBudget({ name: { span, ofAccount }, counts, limit }: OpenBudget, facts: AdmissionFacts): Decision {
  const { answer, buckets } = refusedBy(ofAccount ? "account_budget" : "key_budget", facts);
  const resetsAtMs = periodEndMs(span, counts.now.period);
  const which = { span, budget: limit, keyId: facts.key.id };
  return { answer: { ...answer, ...which, ...(resetsAtMs !== undefined && { resetsAtMs }) }, buckets };
}

type Funds = Pick<Granted, "entitlement" | "unmetered" | "hold" | "free" | "worstCase" | "budgets">;

/** The rate limits of a group or of a key, with the current state of their buckets. */
interface Rate {
  readonly scope: string;
  readonly limits: Pick<LimitSet, "requestsPerMinute" | "tokensPerMinute">;
  requests: Bucket | undefined;
  tokens: Bucket | undefined;
}

function rateOf(
  scope: string,
  limits: Rate["limits"],
  usage: ReturnType<AdmissionFacts["limits"]>,
  nowMs: number,
): Rate {
  const { requestsPerMinute, tokensPerMinute } = limits;
  return {
    scope,
    limits,
    requests: requestsPerMinute === undefined ? undefined : drain(usage?.requests, requestsPerMinute, nowMs),
    tokens: tokensPerMinute === undefined ? undefined : drain(usage?.tokens, tokensPerMinute, nowMs),
  };
}

/** Whose limit refuses, when it is not the group's. */
type RefusingLimit = Pick<AdmitRefused, "limitOfKey" | "limitOfAccount">;

function withinLimits(
  { inputTokens, again }: Pick<AdmitAsk, "inputTokens" | "again">,
  terms: GroupTerms,
  funds: Funds,
  facts: AdmissionFacts,
): Decision {
  const { key, nowMs } = facts;
  const scope = limitScope(key.group, key.id, terms.perKey);
  const usage = facts.limits(scope);
  const sets = limitsOf(key);
  const own = sets.length === 0 ? NO_LIMITS_SET : strictest(sets);
  const counted = countedBy(own, funds.budgets);
  if (!usage) return { answer: granted(scope, funds, counted, NO_LIMITS), buckets: [] };
  const ofGroup = rateOf(scope, terms, usage, nowMs);
  const keys = keyScope(key.id);
  const ofKey = sets.length === 0 ? undefined : rateOf(keys, own, facts.limits(keys), nowMs);
  // The key's own limits come first: what they refuse takes nothing from the group's.
  const rates = ofKey ? [ofKey, ofGroup] : [ofGroup];
  const buckets: [string, Bucket][] = [];
  const refused = (cause: AdmitRefusalCause, limit: RefusingLimit = {}, retryAfterMs?: number): Decision => {
    const limits = statesOf(rates, nowMs);
    return { answer: { outcome: "refused", cause, group: key.group, retryAfterMs, limits, ...limit }, buckets };
  };
  const limitOf = (rate: Rate, limit: number | undefined): RefusingLimit =>
    rate === ofKey ? { limitOfKey: limit } : {};
  if (!again) {
    for (const rate of rates) {
      const limit = rate.limits.requestsPerMinute;
      const wait = rate.requests && limit !== undefined ? waitMs(rate.requests, limit, 1, nowMs) : 0;
      if (wait > 0) return refused("requests", limitOf(rate, limit), wait);
    }
    for (const rate of rates) {
      if (!rate.requests) continue;
      rate.requests = take(rate.requests, 1);
      buckets.push([requestBucket(rate.scope), rate.requests]);
    }
  }
  for (const rate of rates) {
    const limit = rate.limits.tokensPerMinute;
    const wait = rate.tokens && limit !== undefined ? waitMs(rate.tokens, limit, inputTokens, nowMs) : 0;
    if (wait > 0) return refused("tokens", limitOf(rate, limit), wait);
  }
  if (own.concurrency !== undefined && facts.inFlightOfKey >= own.concurrency) {
    return refused("concurrency", { limitOfKey: own.concurrency });
  }
  if (usage.inFlight >= terms.concurrency) return refused("concurrency");
  if (usage.inFlightOfAccount >= ACCOUNT_CONCURRENCY_MAX) {
    return refused("concurrency", { limitOfAccount: ACCOUNT_CONCURRENCY_MAX });
  }
  for (const rate of rates) {
    if (!rate.tokens) continue;
    rate.tokens = take(rate.tokens, inputTokens);
    buckets.push([tokenBucket(rate.scope), rate.tokens]);
  }
  return { answer: granted(scope, funds, counted, statesOf(rates, nowMs)), buckets };
}

/** Written out member by member, because a copy of unknown shape takes about 0.3 us. */
function granted(scope: string, funds: Funds, counted: string, limits: LimitStates): Granted {
  const { entitlement, unmetered, hold, free, worstCase, budgets } = funds;
  return { outcome: "granted", scope, entitlement, unmetered, hold, free, worstCase, budgets, counted, limits };
}

function countedBy(own: Pick<LimitSet, "concurrency" | "tokensPerMinute">, budgets: readonly OpenBudget[]): string {
  if (own === NO_LIMITS_SET && budgets.length === 0) return "";
  return countedText({
    inFlight: own.concurrency !== undefined,
    tokens: own.tokensPerMinute !== undefined,
    budgets: budgets.map(({ name, counts }) => ({ ...name, period: counts.now.period })),
  });
}

/** The bucket states that a client is shown: for each kind the bucket with less left, the key's if both are equal. */
function statesOf(rates: readonly Rate[], nowMs: number): LimitStates {
  let requests: BucketState | undefined;
  let tokens: BucketState | undefined;
  for (const rate of rates) {
    const { requestsPerMinute, tokensPerMinute } = rate.limits;
    requests = lesserOf(requests, rate.requests && bucketState(rate.requests, requestsPerMinute as number, nowMs));
    tokens = lesserOf(tokens, rate.tokens && bucketState(rate.tokens, tokensPerMinute as number, nowMs));
  }
  return { requests, tokens };
}

function lesserOf(one: BucketState | undefined, other: BucketState | undefined): BucketState | undefined {
  return one === undefined || (other !== undefined && other.remaining < one.remaining) ? other : one;
}

function refusedBy(cause: AdmitRefusalCause, { key }: AdmissionFacts): Decision & { readonly answer: AdmitRefused } {
  const answer = { outcome: "refused", cause, group: key.group, retryAfterMs: undefined, limits: NO_LIMITS } as const;
  return { answer, buckets: [] };
}
