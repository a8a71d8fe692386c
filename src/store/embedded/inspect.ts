/** The whole state of one account of the embedded store, in the canonical form of the contract: for tests. */
import type { AccountTag } from "../../values/key.ts";
import { LEDGER_PAGE_MAX, pageSize } from "../checks.ts";
import { isUpstreamField } from "../names.ts";
import type { AccountState, LedgerLine } from "../records.ts";
import { type DaySums, daySumsAsState } from "../sums/day-sums.ts";
import { allBudgets } from "./budgets.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database/database.ts";
import { toDaySum, toUpstreamDaySum } from "./days.ts";
import { listKeys } from "./idempotency.ts";
import { noticesState } from "./notices.ts";
import { findAccountRow, toAccount, toEntitlement, toKey, toLedgerLine } from "./rows.ts";

export function readLedger(context: Context, tag: AccountTag, afterSeq: number, limit: number): LedgerLine[] {
  const size = pageSize(limit, LEDGER_PAGE_MAX);
  return context.db
    .all("SELECT * FROM ledger WHERE tag = ? AND seq > ? ORDER BY seq LIMIT ?", tag, afterSeq, size)
    .map(toLedgerLine);
}

export function inspect(context: Context, tag: AccountTag): AccountState | undefined {
  const { db } = context;
  const nowMs = context.nowMs();
  const row = findAccountRow(db, tag);
  if (row === undefined) return undefined;
  const live = context.live(tag);
  const texts = (sql: string, column: string, ...values: (string | number)[]): string[] =>
    db.all(sql, tag, ...values).map((r) => r[column] as string);
  return {
    account: toAccount(tag, row, live),
    seq: row.seq,
    inFlight: live.holds.size,
    inFlightByScope: Object.fromEntries([...live.inFlightByScope].sort()),
    inFlightByKey: Object.fromEntries([...live.inFlightByKey].sort()),
    budgets: allBudgets(context, tag),
    keys: db.all("SELECT * FROM keys WHERE tag = ? ORDER BY id", tag).map((r) => toKey(tag, r)),
    formerKeys: db
      .all("SELECT hash, id, until FROM former_keys WHERE tag = ? ORDER BY hash", tag)
      .map(({ hash, id, until }) => ({ hash: hash as string, id: id as string, untilMs: Number(until) })),
    entitlements: db
      .all("SELECT * FROM entitlements WHERE tag = ? ORDER BY id", tag)
      .map((r) => toEntitlement(r, live)),
    holds: live.holds
      .entries()
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([requestId, { expiresAtMs, scope, answer }]) => ({
        requestId,
        amount: answer.hold,
        expiresAtMs,
        scope,
        entitlement: answer.entitlement,
      })),
    buckets: Object.fromEntries([...live.buckets].sort(([a], [b]) => (a < b ? -1 : 1))),
    settled: texts("SELECT rid FROM settled WHERE tag = ? AND expires >= ? ORDER BY rid", "rid", nowMs),
    ledger: db.all("SELECT * FROM ledger WHERE tag = ? ORDER BY seq", tag).map(toLedgerLine),
    payments: texts("SELECT id FROM payments WHERE tag = ? ORDER BY id", "id"),
    notices: noticesState(context, tag),
    idempotency: listKeys(db, tag, nowMs),
    ...daysOf(context, tag),
  };
}

function daysOf(context: Context, tag: AccountTag): DaySums {
  const rows = context.db.all("SELECT * FROM days WHERE tag = ? ORDER BY day, field", tag);
  const ofUpstream = (row: Row) => isUpstreamField(row.field as string);
  return daySumsAsState(
    rows.filter((row) => !ofUpstream(row)).map(toDaySum),
    rows.filter(ofUpstream).map(toUpstreamDaySum),
  );
}
