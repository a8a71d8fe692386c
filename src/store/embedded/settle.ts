/**
 * Settlement: the hold goes, the charge and its ledger lines come, the mark keeps both from happening twice.
 * `redis/lua/settle.lua` does the same, step by step.
 */
import type { AccountTag } from "../../values/key.ts";
import { type NanoUsd, nanoUsd } from "../../values/money.ts";
import type { RequestId } from "../../values/request-id.ts";
import { utcDay } from "../../values/time.ts";
import { addOverrun, type Bucket, drain, isOverrun, take, takeAllowed } from "../buckets.ts";
import { type HoldRecord, holdAmount, holdCounted, holdEntitlement, holdKey, holdScope } from "../hold-record.ts";
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
import { addHold, type Live, releaseHold, sweepHolds } from "./live.ts";
import { balanceNotice, noteNotice } from "./notices.ts";
import type { AccountRow } from "./rows.ts";

/** Each so many settlements delete expired marks, so many of them at most. */
const SWEEP_EVERY = 16;
const MARK_SWEEP_MAX = 256;

/** @returns resolves when it is committed; what comes later finds it done already. */
export function settle(context: Context, asked: SettleAsk): Promise<SettleAnswer> | SettleAnswer {
  const { db } = context;
  const { tag, requestId } = asked;
  const nowMs = context.nowMs();
  const account = context.account(tag);
  if (account === undefined) return { outcome: "unknown_account" };
  const live = context.live(tag);
  // What is held has no mark: it would have been let go with it, and a mark lets nothing be held.
  const mark = live.holds.has(requestId) ? undefined : context.settledMark(tag, requestId, nowMs);
  if (mark !== undefined) {
    const recorded = nanoUsd(mark.amount);
    const isSame = recorded === asked.amount || recorded === asked.leftUnpaid?.amount;
    // The mark may be of this very batch, and is as good as its commit.
    return db.commitTogether(() => (isSame ? { outcome: "duplicate" } : { outcome: "mismatch", recorded }));
  }
  if (nowMs - asked.admittedAtMs > SETTLE_HORIZON_MS) return { outcome: "stale" };

  const hold = live.holds.get(requestId);
  sweepHolds(live, nowMs);
  const { ask, left } = decideLeft(asked, live, nowMs);
  const request = hold
    ? { keyId: holdKey(hold), counted: holdCounted(hold) }
    : { keyId: ask.keyId, counted: ask.counted ?? "" };
  const shares = shareOut(context, ask, request, account);
  // Everything is read, and has failed where it can, before the first change.
  const posting = postingOf(context, ask, { account, request, shares, hold, nowMs });
  const keyTokens = tokensOfKey(context, ask, request);
  // Memory follows the disk: a settlement that the disk refused finds its hold still there when it is tried again.
  const undo = undoInMemory(live, ask, request);
  return db.commitTogether(() => {
    post(context, ask, posting);
    const held = releaseHold(live, requestId);
    if (left) live.buckets.set(LEFT_BUCKET, left);
    if (held && isOverrun(Number(shares.charged + shares.absorbed), Number(holdAmount(held)))) {
      live.buckets.set(OVERRUN_BUCKET, addOverrun(live.buckets.get(OVERRUN_BUCKET), nowMs));
    }
    const perMinute = ask.tokensPerMinute;
    if (perMinute !== undefined) correctTokens(live, ask, { scope: scopeOf(ask, hold), perMinute, nowMs });
    if (keyTokens !== undefined) {
      correctTokens(live, ask, { scope: keyScope(request.keyId), perMinute: keyTokens, nowMs });
    }
    const [charged, absorbed] = [nanoUsd(shares.charged), nanoUsd(shares.absorbed)];
    return { outcome: "settled", charged, absorbed, balance: nanoUsd(posting.after.balance) };
  }, undo);
}

/** A mark is in the transaction of its lines; one that is not written yet proves nothing. */
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
 * Decides about a request whose client left before it got anything: absorbed within the account's allowance, which is
 * then to be stored, else charged.
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

/** How an amount divides between who pays and nobody. */
interface Shares {
  readonly charged: bigint;
  readonly absorbed: bigint;
}

/** The payer pays up to what is free once this request's own hold is gone, within its budgets; the rest is absorbed. */
function shareOut(context: Context, ask: SettleAsk, request: CountedRequest, account: AccountRow): Shares {
  if (ask.voided) return { charged: 0n, absorbed: 0n };
  const live = context.live(ask.tag);
  const own = live.holds.get(ask.requestId);
  const released = own !== undefined && holdEntitlement(own) === ask.entitlement ? holdAmount(own) : 0n;
  const free = freeOfPayer(context, ask, account, live, released);
  if (free === "unmetered") return { charged: 0n, absorbed: 0n };
  const held = own ? holdAmount(own) : 0n;
  const rest = budgetRest(context, ask.tag, request, held);
  // What was held is the request's, whatever has become of the budget since.
  const within = rest === undefined || rest > held ? rest : held;
  return upTo(within === undefined || free < within ? free : within, ask.amount);
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

function upTo(free: bigint, amount: bigint): Shares {
  const available = free > 0n ? free : 0n;
  const charged = amount < available ? amount : available;
  return { charged, absorbed: amount - charged };
}

/** Everything that a settlement leaves, as it was read and worked out before anything is changed. */
interface Posting {
  readonly before: AccountRow;
  readonly after: AccountRow;
  readonly shares: Shares;
  readonly lines: readonly LedgerLine[];
  /** Of the group, model and key, and of each upstream that is expected to bill something. */
  readonly sums: ReturnType<typeof sumsOfSettlement>;
  readonly budgets: ReturnType<typeof budgetsAfter>;
  readonly mark: SettledMark;
  readonly nowMs: number;
}

interface Settling {
  readonly account: AccountRow;
  readonly request: CountedRequest;
  readonly shares: Shares;
  readonly hold: HoldRecord | undefined;
  readonly nowMs: number;
}

function postingOf(context: Context, ask: SettleAsk, { account, request, shares, hold, nowMs }: Settling): Posting {
  const unplaced = linesOf(ask, shares, nowMs);
  const after = accountAfter(account, ask, shares, unplaced.length);
  const record = hold === undefined ? "" : JSON.stringify(hold);
  return {
    before: account,
    after,
    shares,
    lines: unplaced.map((line, i) => ({ ...line, seq: account.seq + 1 + i, balance: after.balance })),
    sums: sumsOfSettlement(ask, shares),
    budgets: budgetsAfter(context, ask.tag, request, shares.charged),
    mark: { amount: ask.amount, record, expires: nowMs + SETTLED_MARK_MS },
    nowMs,
  };
}

/** Puts everything that lasts into the batch. */
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
    const notice = balanceNotice(context, before, { balance: after.balance, ref: requestId });
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
  // Mostly there is none, and a DELETE takes the time of several settlements to find that out.
  if (!db.getWritten("SELECT 1 FROM settled WHERE expires < ? LIMIT 1", nowMs)) return;
  db.run(
    "DELETE FROM settled WHERE (tag, rid) IN (SELECT tag, rid FROM settled WHERE expires < ? LIMIT ?)",
    nowMs,
    MARK_SWEEP_MAX,
  );
}

/** The account's row once a settlement has been paid and has so many lines. */
function accountAfter(account: AccountRow, ask: SettleAsk, shares: Shares, lines: number): AccountRow {
  const amount = ask.entitlement === undefined ? shares.charged : 0n;
  if (lines === 0 && amount === 0n) return account;
  const { balance, spent, seq } = account;
  return { ...account, balance: balance - amount, spent: spent + amount, seq: seq + lines };
}

/** @returns puts back what a settlement changes in memory: its hold and its buckets as they are now. */
function undoInMemory(live: Live, ask: SettleAsk, request: CountedRequest): () => void {
  const { requestId } = ask;
  const held = live.holds.get(requestId);
  const names = [LEFT_BUCKET, OVERRUN_BUCKET, tokenBucket(scopeOf(ask, held))];
  if (request.counted !== "") names.push(tokenBucket(keyScope(request.keyId)));
  const buckets = names.map((name) => [name, live.buckets.get(name)] as const);
  return () => {
    if (held && !live.holds.has(requestId)) addHold(live, requestId, held);
    for (const [name, bucket] of buckets) {
      if (bucket) live.buckets.set(name, bucket);
      else live.buckets.delete(name);
    }
  };
}

type UnplacedLine = Omit<LedgerLine, "seq" | "balance">;

function linesOf(ask: SettleAsk, shares: Shares, atMs: number): readonly UnplacedLine[] {
  const accounts = settleAccounts(ask);
  const line = (kind: LedgerLine["kind"], debit: string, credit: string, amount: bigint, memo = ask.memo) => ({
    atMs,
    kind,
    debit,
    credit,
    amount: nanoUsd(amount),
    reference: ask.requestId,
    group: ask.group,
    model: ask.model,
    key: ask.keyId,
    memo,
  });
  const lines = [];
  if (!ask.voided) lines.push(line("usage", accounts.payer, accounts.revenue, shares.charged));
  if (shares.absorbed > 0n) lines.push(line("absorbed", accounts.overHold, accounts.revenue, shares.absorbed));
  if (ask.absorbed > 0n) lines.push(line("absorbed", accounts.absorbed, accounts.upstream, ask.absorbed));
  for (const attempt of ask.attempts ?? []) {
    const { debit, credit } = attemptAccounts(attempt, ask);
    lines.push(line("absorbed", debit, credit, attempt.amount, attempt.memo));
  }
  return lines;
}

/** The estimate that admission took becomes what was really used; what was refused or failed gives it back whole. */
function correctTokens(
  { buckets }: Live,
  ask: SettleAsk,
  { scope, perMinute, nowMs }: { readonly scope: string; readonly perMinute: number; readonly nowMs: number },
): void {
  const difference = tokensToCorrect(ask);
  if (difference === 0) return;
  const name = tokenBucket(scope);
  buckets.set(name, take(drain(buckets.get(name), perMinute, nowMs), difference));
}

const tokensToCorrect = (ask: SettleAsk): number => (ask.voided ? 0 : ask.tokensUsed) - ask.tokensTaken;

/** The tokens per minute of a request's key, where that counts them still. */
function tokensOfKey(context: Context, ask: SettleAsk, request: CountedRequest): number | undefined {
  if (tokensToCorrect(ask) === 0 || !readCounted(request.counted).tokens) return undefined;
  return limitsNow(context, ask.tag, request.keyId).ofKey.tokensPerMinute;
}

function scopeOf({ group, keyId, perKey }: SettleAsk, hold: HoldRecord | undefined): string {
  return hold === undefined ? limitScope(group, keyId, perKey) : holdScope(hold);
}
