/**
 * Settlement: the hold goes, the charge and its ledger lines come, the mark keeps both from happening twice.
 * `redis/lua/settle.lua` does the same, step by step.
 */
import { nanoUsd } from "../../values/money.ts";
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
import { budgetRest, type CountedRequest, limitsNow, spend } from "./budgets.ts";
import type { Context } from "./context.ts";
import { endKey } from "./idempotency.ts";
import { addHold, type Live, releaseHold, sweepHolds } from "./live.ts";
import { noteBalance } from "./notices.ts";
import { type AccountRow, findEntitlement, insertLine } from "./rows.ts";

/** Each so many settlements delete expired marks, so many of them at most. */
const SWEEP_EVERY = 16;
const MARK_SWEEP_MAX = 256;

/** @returns resolves when it is committed; what comes later in this turn of the loop finds it done already. */
export function settle(context: Context, asked: SettleAsk): Promise<SettleAnswer> | SettleAnswer {
  const { db } = context;
  const { tag, requestId } = asked;
  const nowMs = context.nowMs();
  const account = context.account(tag);
  if (account === undefined) return { outcome: "unknown_account" };
  const live = context.live(tag);
  // What is held has no mark: it would have been let go with it, and a mark lets nothing be held.
  const mark = live.holds.has(requestId)
    ? undefined
    : db.get("SELECT amount FROM settled WHERE tag = ? AND rid = ? AND expires >= ?", tag, requestId, nowMs);
  if (mark !== undefined) {
    const recorded = nanoUsd(mark.amount as bigint);
    const isSame = recorded === asked.amount || recorded === asked.leftUnpaid?.amount;
    // The mark may be of this very turn, and is as good as its commit.
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
  // Memory follows the disk: a settlement that the disk refused finds its hold still there when it is tried again.
  const undo = memoryOf(live, ask, request);
  return db.commitTogether(() => {
    const after = post(context, ask, { account, shares, hold, nowMs });
    spend(context, tag, request, shares.charged);
    const held = releaseHold(live, requestId);
    if (left) live.buckets.set(LEFT_BUCKET, left);
    if (held && isOverrun(Number(shares.charged + shares.absorbed), Number(holdAmount(held)))) {
      live.buckets.set(OVERRUN_BUCKET, addOverrun(live.buckets.get(OVERRUN_BUCKET), nowMs));
    }
    correctTokens(live, ask, hold, nowMs);
    correctTokensOfKey(context, ask, request, nowMs);
    const [charged, absorbed] = [nanoUsd(shares.charged), nanoUsd(shares.absorbed)];
    return { outcome: "settled", charged, absorbed, balance: nanoUsd(after.balance) };
  }, undo);
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
  const card = findEntitlement(context.db, tag, entitlement, live);
  if (card === undefined) return 0n;
  return card.quota === undefined ? "unmetered" : card.quota - card.spent - (card.held - released);
}

function upTo(free: bigint, amount: bigint): Shares {
  const available = free > 0n ? free : 0n;
  const charged = amount < available ? amount : available;
  return { charged, absorbed: amount - charged };
}

interface Posting {
  readonly account: AccountRow;
  readonly shares: Shares;
  readonly hold: HoldRecord | undefined;
  readonly nowMs: number;
}

/** Everything that lasts, within one transaction. @returns the account's row after it. */
function post(context: Context, ask: SettleAsk, { account, shares, hold, nowMs }: Posting): AccountRow {
  const { db } = context;
  const lines = linesOf(ask, shares, nowMs);
  const after = charged(account, ask, shares, lines.length);
  if (after !== account) {
    const { balance, spent, seq } = after;
    db.run("UPDATE accounts SET bal = ?, spent = ?, seq = ? WHERE tag = ?", balance, spent, seq, ask.tag);
    noteBalance(context, ask.tag, account, { balance, ref: ask.requestId, nowMs });
  }
  if (ask.entitlement !== undefined && shares.charged > 0n) {
    const { entitlement, tag } = ask;
    db.run("UPDATE entitlements SET spent = spent + ? WHERE tag = ? AND id = ?", shares.charged, tag, entitlement);
    context.cardSettled(tag);
  }
  addToDay(context, ask, shares);
  for (const [i, line] of lines.entries()) {
    insertLine(db, ask.tag, { ...line, seq: account.seq + 1 + i, balance: after.balance });
  }
  db.run(
    "INSERT OR REPLACE INTO settled (tag, rid, amount, record, expires) VALUES (?, ?, ?, ?, ?)",
    ask.tag,
    ask.requestId,
    ask.amount,
    hold === undefined ? "" : JSON.stringify(hold),
    nowMs + SETTLED_MARK_MS,
  );
  endKey(db, ask, nowMs);
  if (context.settlements++ % SWEEP_EVERY === 0) {
    db.run(
      "DELETE FROM settled WHERE (tag, rid) IN (SELECT tag, rid FROM settled WHERE expires < ? LIMIT ?)",
      nowMs,
      MARK_SWEEP_MAX,
    );
  }
  context.accountSettled(ask.tag, after);
  return after;
}

/** The account's row once a settlement has been paid and has so many lines. */
function charged(account: AccountRow, ask: SettleAsk, shares: Shares, lines: number): AccountRow {
  const amount = ask.entitlement === undefined ? shares.charged : 0n;
  if (lines === 0 && amount === 0n) return account;
  const { balance, spent, seq } = account;
  return { ...account, balance: balance - amount, spent: spent + amount, seq: seq + lines };
}

/** What a settlement changes in memory. @returns puts it back. */
function memoryOf(live: Live, ask: SettleAsk, request: CountedRequest): () => void {
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
function correctTokens(live: Live, ask: SettleAsk, hold: HoldRecord | undefined, nowMs: number): void {
  if (ask.tokensPerMinute === undefined) return;
  const difference = (ask.voided ? 0 : ask.tokensUsed) - ask.tokensTaken;
  if (difference === 0) return;
  const name = tokenBucket(scopeOf(ask, hold));
  live.buckets.set(name, take(drain(live.buckets.get(name), ask.tokensPerMinute, nowMs), difference));
}

/** The same in the bucket of its key, where that counts tokens still. */
function correctTokensOfKey(context: Context, ask: SettleAsk, request: CountedRequest, nowMs: number): void {
  const difference = (ask.voided ? 0 : ask.tokensUsed) - ask.tokensTaken;
  if (difference === 0 || !readCounted(request.counted).tokens) return;
  const { tokensPerMinute } = limitsNow(context, ask.tag, request.keyId).ofKey;
  if (tokensPerMinute === undefined) return;
  const { buckets } = context.live(ask.tag);
  const name = tokenBucket(keyScope(request.keyId));
  buckets.set(name, take(drain(buckets.get(name), tokensPerMinute, nowMs), difference));
}

function scopeOf({ group, keyId, perKey }: SettleAsk, hold: HoldRecord | undefined): string {
  return hold === undefined ? limitScope(group, keyId, perKey) : holdScope(hold);
}
