/**
 * Settlement: the hold goes, the charge and its ledger lines come, the mark keeps both from happening twice.
 * `redis/lua/settle.lua` does the same, step by step.
 */
import { nanoUsd } from "../../values/money.ts";
import { utcDay } from "../../values/time.ts";
import { addOverrun, type Bucket, drain, isOverrun, take, takeAllowed } from "../buckets.ts";
import { type HoldRecord, holdAmount, holdEntitlement, holdScope } from "../hold-record.ts";
import { attemptAccounts, LEFT_BUCKET, limitScope, OVERRUN_BUCKET, settleAccounts, tokenBucket } from "../names.ts";
import type { LedgerLine } from "../records.ts";
import {
  chargedInstead,
  SETTLE_HORIZON_MS,
  SETTLED_MARK_MS,
  type SettleAnswer,
  type SettleAsk,
} from "../settlement.ts";
import { sumsOfSettlement } from "../sums/day-costs.ts";
import type { Context } from "./context.ts";
import { endKey } from "./idempotency.ts";
import { type Live, releaseHold, sweepHolds } from "./live.ts";
import { type AccountRow, appendLine, findAccountRow, findEntitlement } from "./rows.ts";

/** Expired marks that one settlement deletes at most. */
const MARK_SWEEP_MAX = 16;

export function settle(context: Context, asked: SettleAsk): SettleAnswer {
  const { db } = context;
  const { tag, requestId } = asked;
  const nowMs = context.nowMs();
  const account = findAccountRow(db, tag);
  if (account === undefined) return { outcome: "unknown_account" };
  const mark = db.get("SELECT amount FROM settled WHERE tag = ? AND rid = ? AND expires >= ?", tag, requestId, nowMs);
  if (mark !== undefined) {
    const recorded = nanoUsd(mark.amount as bigint);
    const isSame = recorded === asked.amount || recorded === asked.leftUnpaid?.amount;
    return isSame ? { outcome: "duplicate" } : { outcome: "mismatch", recorded };
  }
  if (nowMs - asked.admittedAtMs > SETTLE_HORIZON_MS) return { outcome: "stale" };

  const live = context.live(tag);
  const hold = live.holds.get(requestId);
  sweepHolds(live, nowMs);
  const { ask, left } = decideLeft(asked, live, nowMs);
  const shares = shareOut(context, ask, account, live);
  db.commitNormal(() => post(context, ask, shares, hold, nowMs));
  // Memory follows the disk: a settlement that the disk refused finds its hold still there when it is tried again.
  const held = releaseHold(live, requestId);
  if (left) live.buckets.set(LEFT_BUCKET, left);
  if (held && isOverrun(Number(shares.charged + shares.absorbed), Number(holdAmount(held)))) {
    live.buckets.set(OVERRUN_BUCKET, addOverrun(live.buckets.get(OVERRUN_BUCKET), nowMs));
  }
  correctTokens(live, ask, hold, nowMs);
  return {
    outcome: "settled",
    charged: nanoUsd(shares.charged),
    absorbed: nanoUsd(shares.absorbed),
    balance: nanoUsd(account.balance - (ask.entitlement === undefined ? shares.charged : 0n)),
  };
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

/** The payer pays up to what is free once this request's own hold is gone; the rest is absorbed. */
function shareOut(context: Context, ask: SettleAsk, account: AccountRow, live: Live): Shares {
  if (ask.voided) return { charged: 0n, absorbed: 0n };
  const own = live.holds.get(ask.requestId);
  const released = own !== undefined && holdEntitlement(own) === ask.entitlement ? holdAmount(own) : 0n;
  if (ask.entitlement === undefined) return upTo(account.balance - (live.held - released), ask.amount);
  const card = findEntitlement(context.db, ask.tag, ask.entitlement, live);
  if (card === undefined) return upTo(0n, ask.amount);
  if (card.quota === undefined) return { charged: 0n, absorbed: 0n };
  return upTo(card.quota - card.spent - (card.held - released), ask.amount);
}

function upTo(free: bigint, amount: bigint): Shares {
  const available = free > 0n ? free : 0n;
  const charged = amount < available ? amount : available;
  return { charged, absorbed: amount - charged };
}

/** Everything that lasts, within one transaction. */
function post(context: Context, ask: SettleAsk, shares: Shares, hold: HoldRecord | undefined, nowMs: number): void {
  const { db } = context;
  if (shares.charged > 0n) takeCharge(context, ask, shares.charged);
  addToDay(context, ask, shares);
  for (const line of linesOf(ask, shares, nowMs)) appendLine(db, ask.tag, line);
  db.run("DELETE FROM settled WHERE tag = ? AND rid = ?", ask.tag, ask.requestId);
  db.run(
    "INSERT INTO settled (tag, rid, amount, record, expires) VALUES (?, ?, ?, ?, ?)",
    ask.tag,
    ask.requestId,
    ask.amount,
    hold === undefined ? "" : JSON.stringify(hold),
    nowMs + SETTLED_MARK_MS,
  );
  endKey(db, ask, nowMs);
  db.run(
    "DELETE FROM settled WHERE (tag, rid) IN (SELECT tag, rid FROM settled WHERE expires < ? LIMIT ?)",
    nowMs,
    MARK_SWEEP_MAX,
  );
}

function takeCharge(context: Context, ask: SettleAsk, charged: bigint): void {
  const { db } = context;
  if (ask.entitlement === undefined) {
    db.run("UPDATE accounts SET bal = bal - ?1, spent = spent + ?1 WHERE tag = ?2", charged, ask.tag);
  } else {
    db.run("UPDATE entitlements SET spent = spent + ? WHERE tag = ? AND id = ?", charged, ask.tag, ask.entitlement);
  }
}

/** Sums of the day: of the group, model and key, and of each upstream that is expected to bill something. */
function addToDay({ db }: Context, ask: SettleAsk, shares: Shares): void {
  for (const [field, { amount, counts, cost, absorbed }] of sumsOfSettlement(ask, shares)) {
    const { requests, input, cachedInput, cacheWrite, output, reasoning } = counts;
    db.run(
      `INSERT INTO days (tag, day, field, amount, requests, input, cached_input, cache_write, output, reasoning, cost, absorbed)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET amount = amount + excluded.amount, requests = requests + excluded.requests,
         input = input + excluded.input, cached_input = cached_input + excluded.cached_input,
         cache_write = cache_write + excluded.cache_write, output = output + excluded.output,
         reasoning = reasoning + excluded.reasoning, cost = cost + excluded.cost, absorbed = absorbed + excluded.absorbed`,
      ...[ask.tag, utcDay(ask.admittedAtMs), field, amount],
      ...[requests, input, cachedInput, cacheWrite, output, reasoning, cost, absorbed],
    );
  }
}

function linesOf(ask: SettleAsk, shares: Shares, atMs: number): Omit<LedgerLine, "seq" | "balance">[] {
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
    const { debit, credit } = attemptAccounts(attempt);
    lines.push(line("absorbed", debit, credit, attempt.amount, attempt.memo));
  }
  return lines;
}

/** The estimate that admission took becomes what was really used; what was refused or failed gives it back whole. */
function correctTokens(live: Live, ask: SettleAsk, hold: HoldRecord | undefined, nowMs: number): void {
  if (ask.tokensPerMinute === undefined) return;
  const difference = (ask.voided ? 0 : ask.tokensUsed) - ask.tokensTaken;
  if (difference === 0) return;
  const scope = hold === undefined ? limitScope(ask.group, ask.keyId, ask.perKey) : holdScope(hold);
  const name = tokenBucket(scope);
  live.buckets.set(name, take(drain(live.buckets.get(name), ask.tokensPerMinute, nowMs), difference));
}
