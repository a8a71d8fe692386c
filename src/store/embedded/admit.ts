/**
 * Admission: key, plan, group, funds, limits, hold, in the order of DESIGN.md section 3. Synchronous from the first read
 * to the last write, and therefore atomic. `redis/lua/admit.lua` decides the same, step by step.
 */

import type { AdmitAsk, AdmitRefusalCause, AdmitRefused, Admitted, GroupTerms, LimitStates } from "../admission.ts";
import { type Bucket, bucketState, drain, isHeldDear, take, waitMs } from "../buckets.ts";
import { admittedOf, bucketTexts, type HoldRecord } from "../hold-record.ts";
import { limitScope, OVERRUN_BUCKET, requestBucket, tokenBucket } from "../names.ts";
import type { Entitlement } from "../records.ts";
import { ACCOUNT_CONCURRENCY_MAX } from "../settlement.ts";
import type { Context } from "./context.ts";
import { keyTaken, takeKey } from "./idempotency.ts";
import { addHold, type Live, sweepHolds } from "./live.ts";
import { type AccountRow, findAccountRow, listedEntitlements } from "./rows.ts";

const NO_LIMITS: LimitStates = Object.freeze({ requests: undefined, tokens: undefined });

/** What will pay, and how much of it is set aside. */
interface Funds {
  readonly entitlement: string | undefined;
  readonly unmetered: boolean;
  readonly hold: bigint;
  /** What the payer has free beside the hold; undefined where nothing is held. */
  readonly free: bigint | undefined;
}

interface KeyFacts {
  readonly id: string;
  readonly group: string;
}

export function admit(context: Context, ask: AdmitAsk): Admitted | AdmitRefused {
  const { db } = context;
  const nowMs = context.nowMs();
  const account = findAccountRow(db, ask.tag);
  const row = account && db.get("SELECT id, grp, status FROM keys WHERE tag = ? AND hash = ?", ask.tag, ask.keyHash);
  if (account === undefined || row === undefined) return refused("unknown_key", undefined);
  const key: KeyFacts = { id: row.id as string, group: row.grp as string };
  if (row.status === "revoked") return refused("revoked_key", key.group);
  const live = context.live(ask.tag);
  const before = rememberedAnswer(context, ask, live, key, nowMs);
  if (before !== undefined) return before;
  sweepHolds(live, nowMs);
  const taken = ask.idempotency && keyTaken(db, ask.tag, ask.idempotency, nowMs);
  if (taken) return { ...refused(taken.cause, key.group), first: taken.first };

  const offered = ask.groups.find((candidate) => candidate.group === key.group);
  const dear = isHeldDear(live.buckets.get(OVERRUN_BUCKET), nowMs) ? offered?.dear : undefined;
  const terms = offered && { ...offered, ...dear };
  const running = listedEntitlements(db, ask.tag, live).filter((e) => e.fromMs <= nowMs && nowMs < e.untilMs);
  const barred = barredBy(ask, account, key, terms, running);
  if (barred !== undefined || terms === undefined) return refused(barred ?? "group_mismatch", key.group);
  const funds = terms.kind === "time_card" ? cardFunds(ask, terms, running) : balanceFunds(account, live, terms);
  if (typeof funds === "string") return refused(funds, key.group);
  return admitWithinLimits(context, ask, live, key, terms, { ...funds, dear: dear !== undefined }, nowMs);
}

/** The answer that this request id got before, while it is held or its settled mark lives. */
function rememberedAnswer(
  context: Context,
  ask: AdmitAsk,
  live: Live,
  key: KeyFacts,
  nowMs: number,
): Admitted | AdmitRefused | undefined {
  const held = live.holds.get(ask.requestId);
  if (held !== undefined) return admittedOf(ask.tag, held);
  const mark = context.db.get(
    "SELECT record FROM settled WHERE tag = ? AND rid = ? AND expires >= ?",
    ask.tag,
    ask.requestId,
    nowMs,
  );
  if (mark === undefined) return undefined;
  // Voided before it was admitted: an ask that arrives after its own withdrawal holds nothing and goes nowhere.
  if (mark.record === "") return refused("concurrency", key.group);
  return admittedOf(ask.tag, JSON.parse(mark.record as string) as HoldRecord);
}

function barredBy(
  ask: AdmitAsk,
  account: AccountRow,
  key: KeyFacts,
  terms: GroupTerms | undefined,
  running: readonly Entitlement[],
): AdmitRefusalCause | undefined {
  const cardMissing = terms?.kind === "time_card" && !running.some((e) => e.group === key.group);
  if (cardMissing) return "no_entitlement";
  const planned = ask.plans.includes(account.plan) || running.some((e) => ask.plans.includes(e.plan));
  if (!planned) return "not_in_plan";
  return terms === undefined ? "group_mismatch" : undefined;
}

/** The earliest card to expire of the key's group whose plan lists the model and whose rest covers the least hold. */
function cardFunds(ask: AdmitAsk, terms: GroupTerms, running: readonly Entitlement[]): Funds | AdmitRefusalCause {
  const listed = running.filter((e) => e.group === terms.group && ask.plans.includes(e.plan));
  if (listed.length === 0) return "no_entitlement";
  for (const card of listed) {
    if (card.quota === undefined) return { entitlement: card.id, unmetered: true, hold: 0n, free: undefined };
    const rest = card.quota - card.spent - card.held;
    if (rest < terms.holdMin) continue;
    return { entitlement: card.id, unmetered: false, ...heldOf(rest, terms) };
  }
  return "quota_used";
}

function balanceFunds(account: AccountRow, live: Live, terms: GroupTerms): Funds | AdmitRefusalCause {
  const free = account.balance - live.held;
  if (free < terms.holdMin) return "insufficient_balance";
  return { entitlement: undefined, unmetered: false, ...heldOf(free, terms) };
}

function heldOf(available: bigint, { holdFull }: GroupTerms): Pick<Funds, "hold" | "free"> {
  const hold = available > holdFull ? holdFull : available;
  return { hold, free: available - hold };
}

function admitWithinLimits(
  context: Context,
  ask: AdmitAsk,
  live: Live,
  key: KeyFacts,
  terms: GroupTerms,
  funds: Funds & { readonly dear: boolean },
  nowMs: number,
): Admitted | AdmitRefused {
  const scope = limitScope(key.group, key.id, terms.perKey);
  const { requestsPerMinute, tokensPerMinute } = terms;
  let requests = drainedOf(live, requestBucket(scope), requestsPerMinute, nowMs);
  let tokens = drainedOf(live, tokenBucket(scope), tokensPerMinute, nowMs);
  const limits = (): LimitStates => ({
    requests: requests && bucketState(requests, requestsPerMinute as number, nowMs),
    tokens: tokens && bucketState(tokens, tokensPerMinute as number, nowMs),
  });

  if (requests && !ask.again) {
    const wait = waitMs(requests, requestsPerMinute as number, 1, nowMs);
    if (wait > 0) return refused("requests", key.group, wait, limits());
    requests = take(requests, 1);
    live.buckets.set(requestBucket(scope), requests);
  }
  const wait = tokens ? waitMs(tokens, tokensPerMinute as number, ask.inputTokens, nowMs) : 0;
  if (wait > 0) return refused("tokens", key.group, wait, limits());
  const inFlight = live.inFlightByScope.get(scope) ?? 0;
  if (inFlight >= terms.concurrency || live.holds.size >= ACCOUNT_CONCURRENCY_MAX) {
    return refused("concurrency", key.group, undefined, limits());
  }
  const { idempotency } = ask;
  if (idempotency) takeKey(context.db, { ...ask, idempotency }, nowMs + ask.holdTtlMs, nowMs);
  if (tokens) {
    tokens = take(tokens, ask.inputTokens);
    live.buckets.set(tokenBucket(scope), tokens);
  }
  const states = limits();
  const record: HoldRecord = [
    `${funds.hold}`,
    `${nowMs + ask.holdTtlMs}`,
    scope,
    funds.entitlement ?? "",
    key.id,
    key.group,
    funds.unmetered ? "1" : "0",
    `${nowMs}`,
    ...bucketTexts(states.requests),
    ...bucketTexts(states.tokens),
    funds.dear ? "1" : "",
    `${funds.free ?? ""}`,
  ];
  addHold(live, ask.requestId, record);
  return admittedOf(ask.tag, record);
}

function drainedOf(live: Live, name: string, limit: number | undefined, nowMs: number): Bucket | undefined {
  return limit === undefined ? undefined : drain(live.buckets.get(name), limit, nowMs);
}

function refused(
  cause: AdmitRefusalCause,
  group: string | undefined,
  retryAfterMs?: number,
  limits: LimitStates = NO_LIMITS,
): AdmitRefused {
  return { outcome: "refused", cause, group, retryAfterMs, limits };
}
