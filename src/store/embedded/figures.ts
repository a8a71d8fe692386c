/** Figures of an account of the embedded store at one instant, and the names of what it has, in pages. */

import type { AccountTag } from "../../values/key.ts";
import type { LimitUsage } from "../buckets.ts";
import type { AccountFigures, CardFigures, FiguresAsk, RecordNames } from "../figures.ts";
import { readCounted } from "../limits/budgets.ts";
import { keyOfScope, keyScope, OVERRUN_BUCKET, requestBucket, tokenBucket } from "../names.ts";
import { SWEEP_MAX } from "../settlement.ts";
import type { Context } from "./context.ts";
import { spentOf } from "./days.ts";
import type { Live, LiveHold } from "./live.ts";
import { findAccountRow, toAccount, toEntitlement } from "./rows.ts";

/** Cards on one page. */
const PAGE_CARDS = 200;

export function readFigures(context: Context, tag: AccountTag, ask: FiguresAsk): AccountFigures | undefined {
  const { cards = [], requests = [], payments = [], scopes = [], keys = [], spent, holds = false } = ask;
  const { db } = context;
  const nowMs = context.nowMs();
  const row = findAccountRow(db, tag);
  if (row === undefined) return undefined;
  const live = context.live(tag);
  const last = db.get("SELECT max(seq) AS seq FROM ledger WHERE tag = ?", tag)?.seq as bigint | null;
  return {
    account: toAccount(tag, row, live),
    seq: row.seq,
    lastLine: Number(last ?? 0n),
    inFlight: live.holds.size,
    storeTimeMs: nowMs,
    unfinished: false,
    cards: new Map(cards.map((id) => [id, cardOf(context, tag, id, live)])),
    // Some hundred names at most, in one query: a query for each took a third of an audit's time. The marks that were
    // still in the batch are in their table since the row was read.
    marks: byName(requests, context.writtenAmounts(tag, requests, nowMs)),
    payments: byName(payments, paymentsOf(context, tag, payments)),
    paymentCount: ask.paymentCount ? countPayments(context, tag) : undefined,
    scopes: new Map(scopes.map((scope) => [scope, live.inFlightByScope.get(scope) ?? 0])),
    keys: keys.map((name) => ({ ...name, hashOfId: name.hash, idOfHash: name.id })),
    spent: spent ? spentOf(context, tag, spent.days, spent.fields) : new Map(),
    holds: holds ? holdsOf(live) : undefined,
    expiries: new Map(holds ? holdsOf(live).map(({ requestId, expiresAtMs }) => [requestId, expiresAtMs]) : []),
    unreadable: [],
  };
}

/** Each of the names, with what was found for it. */
function byName<T>(names: readonly string[], found: ReadonlyMap<string, T>): Map<string, T | undefined> {
  return new Map(names.map((name) => [name, found.get(name)]));
}

function paymentsOf({ db }: Context, tag: AccountTag, ids: readonly string[]): Map<string, bigint> {
  const sql = "SELECT id, amount FROM payments WHERE tag = ? AND id IN (SELECT value FROM json_each(?))";
  const rows = ids.length > 0 ? db.all(sql, tag, JSON.stringify(ids)) : [];
  return new Map(rows.map(({ id, amount }) => [id as string, amount as bigint]));
}

function countPayments({ db }: Context, tag: AccountTag): number {
  return Number(db.get("SELECT count(*) AS n FROM payments WHERE tag = ?", tag)?.n ?? 0n);
}

function cardOf({ db }: Context, tag: AccountTag, id: string, live: Live): CardFigures | undefined {
  const row = db.get("SELECT * FROM entitlements WHERE tag = ? AND id = ?", tag, id);
  return row && { ...toEntitlement(row, live), listed: row.listed === 1n };
}

function holdsOf(live: Live): NonNullable<AccountFigures["holds"]>[number][] {
  return live.holds.entries().map(([requestId, { expiresAtMs, scope, answer }]) => ({
    requestId,
    amount: answer.hold,
    expiresAtMs,
    scope,
    entitlement: answer.entitlement,
  }));
}

/** A key's id and hash are in the same row, so there is no index to compare. */
export function listRecords(context: Context, tag: AccountTag, cursor: string | undefined): RecordNames {
  const rows = context.db.all(
    "SELECT id FROM entitlements WHERE tag = ? AND id > ? ORDER BY id LIMIT ?",
    tag,
    cursor ?? "",
    PAGE_CARDS,
  );
  const cards = rows.map((row) => row.id as string);
  const scopes = cursor === undefined ? [...context.live(tag).inFlightByScope.keys()] : [];
  return { cards, scopes, keys: [], next: rows.length < PAGE_CARDS ? undefined : cards.at(-1) };
}

/* Reading limits of the embedded store. */

/** As the next admission would find them, after it has released expired holds. */
export function readLimits(context: Context, tag: AccountTag, scope: string): LimitUsage | undefined {
  if (findAccountRow(context.db, tag) === undefined) return undefined;
  const nowMs = context.nowMs();
  const live = context.live(tag);
  const expired = live.holds
    .entries()
    .map(([requestId, held]) => ({ requestId, held, atMs: held.expiresAtMs }))
    .filter(({ atMs }) => atMs <= nowMs)
    .sort((a, b) => a.atMs - b.atMs || (a.requestId < b.requestId ? -1 : 1))
    .slice(0, SWEEP_MAX);
  const isOfKey = ({ answer }: LiveHold) => keyScope(answer.keyId) === scope && readCounted(answer.counted).inFlight;
  const ofScope = expired.filter(({ held }) => held.scope === scope || isOfKey(held));
  const counts = keyOfScope(scope) ? live.inFlightByKey : live.inFlightByScope;
  return {
    requests: live.buckets.get(requestBucket(scope)),
    tokens: live.buckets.get(tokenBucket(scope)),
    overrun: live.buckets.get(OVERRUN_BUCKET),
    inFlight: (counts.get(keyOfScope(scope) ?? scope) ?? 0) - ofScope.length,
    inFlightOfAccount: live.holds.size - expired.length,
    storeTimeMs: nowMs,
  };
}
