/**
 * Admission on the embedded store: asks `decide` about the account and stores its decision. It is synchronous from the
 * first read to the last write, and therefore atomic. `redis/lua/admit.lua` does the same, step by step.
 */

import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { issuedAtMs, type RequestId } from "../../values/request-id.ts";
import type { AdmitAsk, AdmitRefused, Admitted } from "../admission.ts";
import {
  type AdmissionFacts,
  addressRefusal,
  decide,
  effectiveKeyStatus,
  type Granted,
  keyRefusal,
  NO_LIMITS,
  runningCards,
} from "../decision.ts";
import type { ExtendAnswer, ExtendAsk } from "../extension.ts";
import { admittedOf, type HoldRecord } from "../hold-record.ts";
import { asOfNow, periodOf } from "../limits/budgets.ts";
import { accountId, OVERRUN_BUCKET, requestBucket, tokenBucket } from "../names.ts";
import type { Key } from "../records.ts";
import { budgetRest, findBudget, openCounted, openPeriod } from "./budgets.ts";
import { listAgain } from "./cards.ts";
import type { Context } from "./context.ts";
import { keyTaken, takeKey } from "./idempotency.ts";
import { addHold, growHold, type Live, sweepHolds } from "./live.ts";
import { type AccountRow, instantOrNone } from "./rows.ts";

type KeyFacts = Pick<Key, "id" | "group" | "status" | "expiresAtMs" | "limits" | "caps">;

export function admit(context: Context, ask: AdmitAsk): Admitted | AdmitRefused {
  const { db } = context;
  const nowMs = context.nowMs();
  const account = context.account(ask.tag);
  const row = account && context.key(ask.tag, ask.keyHash);
  if (account === undefined || row === undefined) return refused("unknown_key", undefined);
  const key = {
    id: row.id,
    group: row.grp,
    status: effectiveKeyStatus(row.status as Key["status"], account.status),
    expiresAtMs: instantOrNone(row.expires),
    limits: row.limits,
    caps: row.caps,
  } as KeyFacts;
  const cause = keyRefusal(key, nowMs) ?? addressRefusal(key, ask.address);
  if (cause !== undefined) return refused(cause, key.group);
  const live = context.live(ask.tag);
  const before = ask.fresh ? undefined : rememberedAnswer(context, ask, live, key, nowMs);
  if (before !== undefined) return before;
  sweepHolds(live, nowMs);
  const taken = ask.idempotency && keyTaken(db, ask.tag, ask.idempotency, nowMs, (id) => isGone(context, live, id));
  if (taken) return { ...refused(taken.cause, key.group), first: taken.first };
  if (context.hasHiddenEntitlements(ask.tag, nowMs)) db.commitFull(() => listAgain(context, ask.tag, nowMs));
  const { answer, buckets } = decide(ask, admissionFacts(context, ask, account, key, nowMs));
  for (const [name, bucket] of buckets) live.buckets.set(name, bucket);
  return answer.outcome === "refused" ? answer : hold(context, ask, key, answer, nowMs);
}

/**
 * Whether a request that has a key was killed with its process before its OPEN was in the journal: it is older than this
 * process, it has no hold here, and what the journal knows of earlier processes is settled. Nothing will settle it, and
 * nothing was charged. A running request of this process may also be without its hold, if the clock was ahead for a time.
 */
function isGone(context: Context, { holds }: Live, requestId: RequestId): boolean {
  return !holds.has(requestId) && issuedAtMs(requestId) < context.openedAtMs && context.isRecovered();
}

/** The earlier answer to this request id, while its hold or its settled mark exists. */
function rememberedAnswer(
  context: Context,
  ask: AdmitAsk,
  live: Live,
  key: KeyFacts,
  nowMs: number,
): Admitted | AdmitRefused | undefined {
  const held = live.holds.get(ask.requestId);
  if (held !== undefined) return held.answer;
  const mark = context.settledMark(ask.tag, ask.requestId, nowMs);
  if (mark === undefined) return undefined;
  // Voided before it was admitted: an ask that arrives after its own withdrawal holds nothing and is not sent.
  if (mark.record === "") return refused("concurrency", key.group);
  return admittedOf(ask.tag, JSON.parse(mark.record) as HoldRecord);
}

function admissionFacts(
  context: Context,
  { tag }: AdmitAsk,
  account: AccountRow,
  key: KeyFacts,
  nowMs: number,
): AdmissionFacts {
  const live = context.live(tag);
  return {
    key,
    plan: account.plan,
    running: runningCards(context.entitlements(tag, nowMs), nowMs),
    free: nanoUsd(account.balance - live.held),
    overrun: live.buckets.get(OVERRUN_BUCKET),
    accountLimits: account.limits,
    budget: (field) => findBudget(context, tag, field),
    inFlightOfKey: live.inFlightByKey.get(key.id) ?? 0,
    limits: (scope) => ({
      requests: live.buckets.get(requestBucket(scope)),
      tokens: live.buckets.get(tokenBucket(scope)),
      inFlight: live.inFlightByScope.get(scope) ?? 0,
      inFlightOfAccount: live.holds.size,
    }),
    nowMs,
  };
}

function hold(context: Context, ask: AdmitAsk, key: KeyFacts, granted: Granted, nowMs: number): Admitted {
  const untilMs = nowMs + ask.holdTtlMs;
  const { idempotency } = ask;
  // Done first: if the disk refuses the period, no hold is left behind that is never released.
  if (granted.hold > 0n) {
    for (const { name, field } of granted.budgets) {
      openPeriod(context, ask.tag, field, (found) => asOfNow(found, periodOf(name.span, nowMs)));
    }
  }
  if (idempotency) takeKey(context.db, { ...ask, idempotency }, untilMs, nowMs);
  const { scope } = granted;
  const answer = admittedNow(ask, key, granted, nowMs);
  addHold(context.live(ask.tag), ask.requestId, { expiresAtMs: untilMs, scope, answer });
  return answer;
}

/** The same answer as `admittedOf` gives for the record. */
function admittedNow({ tag }: AdmitAsk, key: KeyFacts, granted: Granted, nowMs: number): Admitted {
  const { hold, worstCase, free, entitlement, unmetered, limits, counted } = granted;
  const { id, group } = key;
  const answer = {
    outcome: "admitted",
    accountId: accountId(tag),
    keyId: id,
    group,
    hold,
    entitlement,
    unmetered,
    storeTimeMs: nowMs,
    limits,
    counted,
  } as const;
  if (worstCase) return { ...answer, worstCase, ...(free !== undefined && { free }) };
  return free === undefined ? answer : { ...answer, free };
}

function refused(cause: AdmitRefused["cause"], group: string | undefined): AdmitRefused {
  return { outcome: "refused", cause, group, retryAfterMs: undefined, limits: NO_LIMITS };
}

/* Extends a hold as far as free funds allow. `redis/lua/extend.lua` does the same, step by step. */

export function extend(context: Context, ask: ExtendAsk): ExtendAnswer {
  const nowMs = context.nowMs();
  const account = context.account(ask.tag);
  if (account === undefined) return { outcome: "gone" };
  const live = context.live(ask.tag);
  sweepHolds(live, nowMs);
  const record = live.holds.get(ask.requestId);
  // A sweep is limited, so the holds that it left may be expired too.
  if (record === undefined || record.expiresAtMs <= nowMs) return { outcome: "gone" };
  const { hold: held, unmetered, entitlement, keyId, counted } = record.answer;
  // An entitlement without quota pays without a hold.
  if (held >= ask.target || unmetered) return { outcome: "held", hold: held };
  // A key or account that may no longer be used keeps what was set aside for the request, and gets no more.
  if (account.status !== "normal" || isShutOut(context, ask.tag, keyId)) return { outcome: "held", hold: held };
  const request = { keyId, counted };
  const free = least(
    freeFor(context, ask.tag, account.balance, live, entitlement),
    budgetRest(context, ask.tag, request, 0n, "all"),
  );
  const wanted = ask.target - held;
  const more = wanted < free ? wanted : free;
  if (more <= 0n) return { outcome: "held", hold: held };
  openCounted(context, ask.tag, request);
  growHold(live, ask.requestId, record, more);
  return { outcome: "held", hold: nanoUsd(held + more) };
}

function isShutOut({ db }: Context, tag: AccountTag, keyId: string): boolean {
  const status = db.get("SELECT status FROM keys WHERE tag = ? AND id = ?", tag, keyId)?.status;
  return status === "revoked" || status === "suspended";
}

const least = (a: bigint, b: bigint | undefined): bigint => (b === undefined || a < b ? a : b);

/** What the payer of the request has beyond all holds. */
function freeFor(
  context: Context,
  tag: AccountTag,
  balance: bigint,
  live: Live,
  entitlement: string | undefined,
): bigint {
  if (entitlement === undefined) return balance - live.held;
  const card = context.entitlement(tag, entitlement);
  return card?.quota === undefined ? 0n : card.quota - card.spent - card.held;
}
