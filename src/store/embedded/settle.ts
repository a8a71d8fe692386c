/**
 * Settlement: releases the hold, writes the charge and its ledger lines, and sets the mark that keeps both from
 * happening twice. `redis/lua/settle.lua` does the same, step by step.
 */
import type { AccountTag } from "../../values/key.ts";
import { type NanoUsd, nanoUsd, ZERO } from "../../values/money.ts";
import type { RequestId } from "../../values/request-id.ts";
import { utcDay } from "../../values/time.ts";
import { addOverrun, type Bucket, drain, isOverrun, take, takeAllowed } from "../buckets.ts";
import { recordOf } from "../hold-record.ts";
import { readCounted } from "../limits/budgets.ts";
import {
  attemptAccounts,
  keyScope,
  LEFT_BUCKET,
  limitScope,
  OVERRUN_BUCKET,
  settleAccounts,
  tokenBucket,
} from "../names.ts";
import type { LedgerLine } from "../records.ts";
import {
  chargedInstead,
  SETTLE_HORIZON_MS,
  SETTLED_MARK_MS,
  type SettleAnswer,
  type SettleAsk,
} from "../settlement.ts";
import { sumsOfSettlement } from "../sums/day-costs.ts";
import { budgetRest, budgetsAfter, type CountedRequest, limitsNow } from "./budgets.ts";
import type { Context } from "./context.ts";
import type { SettledMark } from "./database/batch.ts";
import { endKey } from "./idempotency.ts";
import { lateCharge } from "./late.ts";
import { addHold, type Live, type LiveHold, releaseHold, sweepHolds } from "./live.ts";
import { balanceNotice, noteNotice } from "./notices.ts";
import type { AccountRow } from "./rows.ts";

/** How many settlements pass between deletions of expired marks, and the most marks deleted at once. */
const SWEEP_EVERY = 16;
const MARK_SWEEP_MAX = 256;

/** @returns a promise that resolves when it is committed; later calls already see the change. */
export function settle(context: Context, asked: SettleAsk): Promise<SettleAnswer> | SettleAnswer {
  const { db } = context;
  const { tag, requestId } = asked;
  const nowMs = context.nowMs();
  const account = context.account(tag);
  if (account === undefined) return { outcome: "unknown_account" };
  const live = context.live(tag);
  const hold = live.holds.get(requestId);
  // A held request has no mark: the mark would have released the hold, and a marked request is not admitted.
  const mark = hold === undefined ? context.settledMark(tag, requestId, nowMs) : undefined;
  if (mark !== undefined) {
    const recorded = nanoUsd(mark.amount);
    const isSame = recorded === asked.amount || recorded === asked.leftUnpaid?.amount;
    // The mark may be in this very batch, and is as durable as its commit.
    return db.commitTogether(() => (isSame ? { outcome: "duplicate" } : { outcome: "mismatch", recorded }));
  }
  // A held request was not settled before, however long ago the clock says that it was admitted.
  if (hold === undefined) {
    const late = lateAnswer(context, asked, account.seq, nowMs);
    if (late) return late;
    if (nowMs - asked.admittedAtMs > SETTLE_HORIZON_MS) return { outcome: "stale" };
  }

  // The sweep may have released this hold as expired.
  const held = sweepHolds(live, nowMs) ? live.holds.get(requestId) : hold;
  const { ask, left } = decideLeft(asked, live, nowMs);
  const request = hold ? hold.answer : { keyId: ask.keyId, counted: ask.counted ?? "" };
  const settling = { account, live, request, hold, held, nowMs };
  // Everything is read before the first change, so that whatever can fail has failed by then.
  const shares = shareOut(context, ask, settling);
  const posting = postingOf(context, ask, settling, shares);
  const buckets = bucketsAfter(context, ask, settling, shares, left);
  const { charged, absorbed } = shares;
  const answer = { outcome: "settled", charged, absorbed, balance: nanoUsd(posting.after.balance) } as const;
  return db.commitTogether(
    () => {
      post(context, ask, posting);
      releaseHold(live, requestId);
      for (const { name, after } of buckets) live.buckets.set(name, after);
      return answer;
    },
    // Undo: memory follows the disk. When a settlement that the disk refused is retried, its hold still exists.
    () => {
      if (held && !live.holds.has(requestId)) addHold(live, requestId, held);
      for (const change of buckets) putBack(live, change);
    },
  );
}

/** The answer when the request's lines show that it was settled; its mark is then written again. */
function lateAnswer(
  context: Context,
  ask: SettleAsk,
  seq: number,
  nowMs: number,
): Promise<SettleAnswer> | SettleAnswer | undefined {
  const charged = lateCharge(context, ask, seq);
  if (charged === undefined) return undefined;
  const { tag, requestId, entitlement, leftUnpaid } = ask;
  const isLeft = charged === leftUnpaid?.amount;
  // A card without a quota pays nothing.
  const isSame = isLeft || charged === ask.amount || (entitlement !== undefined && charged === 0n);
  if (!isSame) return { outcome: "mismatch", recorded: nanoUsd(charged) };
  const mark = { amount: isLeft ? charged : ask.amount, record: "", expires: nowMs + SETTLED_MARK_MS };
  return context.db.commitTogether(() => {
    context.db.batch.addMark(tag, requestId, mark);
    return { outcome: "duplicate" };
  });
}

/** A mark is written in the transaction of its lines; a mark that is not written yet proves nothing. */
export function settledAmounts(
  context: Context,
  tag: AccountTag,
  requestIds: readonly RequestId[],
): (NanoUsd | undefined)[] {
  if (context.account(tag) === undefined) return requestIds.map(() => undefined);
  const written = context.writtenAmounts(tag, requestIds, context.nowMs());
  return requestIds.map((id) => written.get(id));
}

/**
 * Decides about a request whose client disconnected before it got anything. If the account's allowance covers it, it is
 * absorbed and the reduced allowance is returned for storing. Otherwise it is charged.
 */
function decideLeft(
  ask: SettleAsk,
  live: Live,
  nowMs: number,
): { readonly ask: SettleAsk; readonly left: Bucket | undefined } {
  const { leftUnpaid } = ask;
  if (!leftUnpaid) return { ask, left: undefined };
  const { allowance } = leftUnpaid;
  const left = takeAllowed(live.buckets.get(LEFT_BUCKET), Number(allowance), Number(ask.absorbed), nowMs);
  return { ask: left ? ask : chargedInstead(ask, leftUnpaid), left };
}

/** How an amount is divided between the payer and the operator (absorbed). */
interface Shares {
  readonly charged: NanoUsd;
  readonly absorbed: NanoUsd;
  /** What exceeds funds or any budget, including an owner's own. */
  readonly beyond: NanoUsd;
}

const NO_SHARES: Shares = { charged: ZERO, absorbed: ZERO, beyond: ZERO };

/**
 * The payer pays up to what is free after this request's own hold is released, within the operator's budgets; the rest
 * is absorbed. An owner's own budget decides only what may begin, not who pays for usage.
 * @param own what is held for the request.
 */
function shareOut(
  context: Context,
  ask: SettleAsk,
  { live, account, request, held: own }: Pick<Settling, "live" | "account" | "request" | "held">,
): Shares {
  if (ask.voided) return NO_SHARES;
  const held = own ? own.answer.hold : 0n;
  const released = own !== undefined && own.answer.entitlement === ask.entitlement ? held : 0n;
  const free = freeOfPayer(context, ask, account, live, released);
  if (free === "unmetered") return NO_SHARES;
  const chargedWithin = (whose: "all" | "operators"): bigint => {
    const rest = budgetRest(context, ask.tag, request, held, whose);
    // What was held belongs to the request, whatever happened to the budget since.
    const within = rest === undefined || rest > held ? rest : held;
    return upTo(within === undefined || free < within ? free : within, ask.amount);
  };
  const charged = chargedWithin("operators");
  const covered = request.counted === "" ? charged : chargedWithin("all");
  const left = (paid: bigint) => nanoUsd(ask.amount - paid);
  return { charged: nanoUsd(charged), absorbed: left(charged), beyond: left(covered) };
}

function freeOfPayer(
  context: Context,
  { tag, entitlement }: SettleAsk,
  account: AccountRow,
  live: Live,
  released: bigint,
): bigint | "unmetered" {
  if (entitlement === undefined) return account.balance - (live.held - released);
  const card = context.entitlement(tag, entitlement);
  if (card === undefined) return 0n;
  return card.quota === undefined ? "unmetered" : card.quota - card.spent - (card.held - released);
}

function upTo(free: bigint, amount: bigint): bigint {
  const available = free > 0n ? free : 0n;
  return amount < available ? amount : available;
}

/** Everything that a settlement writes, read and computed before anything is changed. */
interface Posting {
  readonly before: AccountRow;
  readonly after: AccountRow;
  readonly shares: Shares;
  readonly lines: readonly LedgerLine[];
  /** The sums of the group, model and key, and of each upstream that is expected to bill something. */
  readonly sums: ReturnType<typeof sumsOfSettlement>;
  readonly budgets: ReturnType<typeof budgetsAfter>;
  readonly mark: SettledMark;
  readonly nowMs: number;
}

/** A request as it is found at settlement. */
interface Settling {
  readonly account: AccountRow;
  readonly live: Live;
  readonly request: CountedRequest;
  /** Its hold at the beginning of the settlement, and after expired holds were released. */
  readonly hold: LiveHold | undefined;
  readonly held: LiveHold | undefined;
  readonly nowMs: number;
}

function postingOf(
  context: Context,
  ask: SettleAsk,
  { account, request, hold, nowMs }: Settling,
  shares: Shares,
): Posting {
  const amount = ask.entitlement === undefined ? shares.charged : ZERO;
  const lines = linesOf(ask, shares, { atMs: nowMs, after: account.seq, balance: account.balance - amount });
  const record = hold === undefined ? "" : JSON.stringify(recordOf(hold.answer, hold.expiresAtMs, hold.scope));
  return {
    before: account,
    after: accountAfter(account, amount, lines.length),
    shares,
    lines,
    sums: sumsOfSettlement(ask, shares),
    budgets: budgetsAfter(context, ask.tag, request, shares.charged),
    mark: { amount: ask.amount, record, expires: nowMs + SETTLED_MARK_MS },
    nowMs,
  };
}

/** Adds everything persistent to the batch. */
function post(
  context: Context,
  ask: SettleAsk,
  { before, after, shares, lines, sums, budgets, mark, nowMs }: Posting,
): void {
  const { db } = context;
  const { batch } = db;
  const { tag, requestId, entitlement } = ask;
  if (after !== before) {
    batch.setAccount(tag, after);
    context.accountSettled(tag, after);
    const notice = balanceNotice(context, before, { balance: after.balance, by: "request", ref: requestId });
    if (notice) batch.addWrite(() => noteNotice(context, tag, notice, nowMs));
  }
  if (entitlement !== undefined && shares.charged > 0n) {
    batch.chargeCard(tag, entitlement, shares.charged);
    context.cardSettled(tag, entitlement, shares.charged);
  }
  const day = utcDay(ask.admittedAtMs);
  for (const [field, total] of sums) batch.addToDay(tag, day, field, total);
  for (const line of lines) batch.addLine(tag, line);
  for (const [field, counts] of budgets) batch.setBudget(tag, field, counts);
  batch.addMark(tag, requestId, mark);
  if (ask.idempotency) batch.addWrite(() => endKey(db, ask, nowMs));
  if (context.settlements++ % SWEEP_EVERY === 0) batch.addWrite(() => sweepMarks(context, nowMs));
}

function sweepMarks({ db }: Context, nowMs: number): void {
  // Usually there is none, and a DELETE takes as long as several settlements to find that out.
  if (!db.getWritten("SELECT 1 FROM settled WHERE expires < ? LIMIT 1", nowMs)) return;
  db.run(
    "DELETE FROM settled WHERE (tag, rid) IN (SELECT tag, rid FROM settled WHERE expires < ? LIMIT ?)",
    nowMs,
    MARK_SWEEP_MAX,
  );
}

/** The account's row after a settlement has charged its balance and written its lines. */
function accountAfter(account: AccountRow, amount: bigint, lines: number): AccountRow {
  if (lines === 0 && amount === 0n) return account;
  const { balance, spent, seq } = account;
  return { ...account, balance: balance - amount, spent: spent + amount, seq: seq + lines };
}

/**
 * @param atMs when they are written; @param after the number of the line before them; @param balance after all of them.
 */
function linesOf(
  ask: SettleAsk,
  shares: Shares,
  { atMs, after, balance }: { readonly atMs: number; readonly after: number; readonly balance: bigint },
): readonly LedgerLine[] {
  const { requestId: reference, group, model, keyId: key } = ask;
  const accounts = settleAccounts(ask);
  const lines: LedgerLine[] = [];
  const add = (kind: LedgerLine["kind"], debit: string, credit: string, amount: NanoUsd, memo = ask.memo) => {
    const seq = after + 1 + lines.length;
    lines.push({ seq, atMs, kind, debit, credit, amount, balance, reference, group, model, key, memo });
  };
  if (!ask.voided) add("usage", accounts.payer, accounts.revenue, shares.charged);
  if (shares.absorbed > 0n) add("absorbed", accounts.overHold, accounts.revenue, shares.absorbed);
  if (ask.absorbed > 0n) add("absorbed", accounts.absorbed, accounts.upstream, ask.absorbed);
  for (const attempt of ask.attempts ?? []) {
    const { debit, credit } = attemptAccounts(attempt, ask);
    add("absorbed", debit, credit, attempt.amount, attempt.memo);
  }
  return lines;
}

/* Buckets of the account that a settlement changes: usually none. */

interface BucketChange {
  readonly name: string;
  /** Restored if the commit fails. */
  readonly before: Bucket | undefined;
  readonly after: Bucket;
}

/** @param left the account's allowance bucket, if the request was taken from it. */
function bucketsAfter(
  context: Context,
  ask: SettleAsk,
  { live, request, hold, held, nowMs }: Settling,
  { beyond }: Shares,
  left: Bucket | undefined,
): readonly BucketChange[] {
  const changes: BucketChange[] = [];
  const change = (name: string, after: (before: Bucket | undefined) => Bucket): void => {
    const before = live.buckets.get(name);
    changes.push({ name, before, after: after(before) });
  };
  if (left) change(LEFT_BUCKET, () => left);
  if (held && isOverrun(Number(beyond), Number(held.answer.hold))) {
    change(OVERRUN_BUCKET, (before) => addOverrun(before, nowMs));
  }
  // Replaces admission's estimate by the actual usage: none for a refused or failed request, and for what a client
  // wasted no more than was taken.
  const used = ask.voided ? Math.min(ask.tokensUsed, ask.tokensTaken) : ask.tokensUsed;
  const difference = used - ask.tokensTaken;
  if (difference === 0) return changes;
  const correct = (scope: string, perMinute: number | undefined): void => {
    if (perMinute === undefined) return;
    change(tokenBucket(scope), (before) => take(drain(before, perMinute, nowMs), difference));
  };
  correct(hold ? hold.scope : limitScope(ask.group, ask.keyId, ask.perKey), ask.tokensPerMinute);
  if (readCounted(request.counted).tokens) {
    correct(keyScope(request.keyId), limitsNow(context, ask.tag, request.keyId).ofKey.tokensPerMinute);
  }
  return changes;
}

function putBack({ buckets }: Live, { name, before }: BucketChange): void {
  if (before) buckets.set(name, before);
  else buckets.delete(name);
}
