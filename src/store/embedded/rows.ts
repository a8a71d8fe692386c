/** Converts database rows to values of the contract, and has the look-ups that several operations share. */
import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { accountId } from "../names.ts";
import type { Account, Entitlement, Key, LedgerLine } from "../records.ts";
import type { Database, Row } from "./database/database.ts";
import type { Live } from "./live.ts";

const text = (row: Row, column: string): string => row[column] as string;
const big = (row: Row, column: string): bigint => row[column] as bigint;
/** Instants and counts, far below 2^53. */
const whole = (row: Row, column: string): number => Number(row[column]);

/** An instant, or undefined when the column is NULL. */
export const instantOrNone = (value: Row[string] | undefined): number | undefined =>
  value === null ? undefined : Number(value);

export interface AccountRow {
  readonly name: string;
  readonly plan: string;
  readonly planRevision: number;
  readonly limits: string;
  readonly limitsRevision: number;
  readonly status: Account["status"];
  /** A JSON object. */
  readonly labels: string;
  readonly revision: number;
  readonly labelsRevision: number;
  readonly nameRevision: number;
  readonly balance: bigint;
  readonly spent: bigint;
  readonly topped: bigint;
  readonly seq: number;
  readonly notifyBelow: bigint | undefined;
  readonly notifyRevision: number;
  readonly createdAtMs: number;
}

export function findAccountRow(db: Database, tag: AccountTag): AccountRow | undefined {
  const row = db.get("SELECT * FROM accounts WHERE tag = ?", tag);
  if (row === undefined) return undefined;
  return {
    name: text(row, "name"),
    plan: text(row, "plan"),
    planRevision: whole(row, "plan_revision"),
    limits: text(row, "limits"),
    limitsRevision: whole(row, "limits_revision"),
    status: text(row, "status") as Account["status"],
    labels: text(row, "labels"),
    revision: whole(row, "revision"),
    labelsRevision: whole(row, "labels_revision"),
    nameRevision: whole(row, "name_revision"),
    balance: big(row, "bal"),
    spent: big(row, "spent"),
    topped: big(row, "topped"),
    seq: whole(row, "seq"),
    notifyBelow: row.notify_below === null ? undefined : big(row, "notify_below"),
    notifyRevision: whole(row, "notify_revision"),
    createdAtMs: whole(row, "created"),
  };
}

export function toAccount(tag: AccountTag, row: AccountRow, live: Live): Account {
  return {
    id: accountId(tag),
    tag,
    name: row.name,
    plan: row.plan,
    planRevision: row.planRevision,
    limits: row.limits,
    limitsRevision: row.limitsRevision,
    status: row.status,
    labels: JSON.parse(row.labels) as Account["labels"],
    revision: row.revision,
    labelsRevision: row.labelsRevision,
    nameRevision: row.nameRevision,
    balance: nanoUsd(row.balance),
    held: nanoUsd(live.held),
    spent: nanoUsd(row.spent),
    topped: row.topped,
    lines: row.seq,
    notifyBelow: row.notifyBelow === undefined ? undefined : nanoUsd(row.notifyBelow),
    notifyRevision: row.notifyRevision,
    createdAtMs: row.createdAtMs,
  };
}

export function toKey(tag: AccountTag, row: Row): Key {
  return {
    id: text(row, "id"),
    tag,
    group: text(row, "grp"),
    name: text(row, "name"),
    status: text(row, "status") as Key["status"],
    expiresAtMs: instantOrNone(row.expires),
    previousUntilMs: instantOrNone(row.previous_until),
    createdAtMs: whole(row, "created"),
    revision: whole(row, "revision"),
    rotation: whole(row, "rotation"),
    limits: text(row, "limits"),
    caps: text(row, "caps"),
  };
}

export function toEntitlement(row: Row, live: Live): Entitlement {
  const id = text(row, "id");
  return {
    id,
    card: (row.card ?? undefined) as string | undefined,
    plan: text(row, "plan"),
    group: text(row, "grp"),
    fromMs: whole(row, "starts"),
    untilMs: whole(row, "ends"),
    quota: row.quota === null ? undefined : nanoUsd(big(row, "quota")),
    spent: nanoUsd(big(row, "spent")),
    held: nanoUsd(live.heldByEntitlement.get(id) ?? 0n),
  };
}

/** Entitlements that may still run, earliest to expire first. */
export function listedEntitlements(db: Database, tag: AccountTag, live: Live): Entitlement[] {
  const sql = "SELECT * FROM entitlements WHERE tag = ? AND listed = 1 ORDER BY ends, starts, id";
  return db.all(sql, tag).map((row) => toEntitlement(row, live));
}

/**
 * The same with those that are not listed and have not ended by `nowMs`: they left the list while the clock was ahead.
 */
export function entitlementRows(db: Database, tag: AccountTag, nowMs: number): Row[] {
  const sql = "SELECT * FROM entitlements WHERE tag = ? AND (listed = 1 OR ends > ?) ORDER BY ends, starts, id";
  return db.all(sql, tag, nowMs);
}

export function findEntitlement(db: Database, tag: AccountTag, id: string, live: Live): Entitlement | undefined {
  const row = db.get("SELECT * FROM entitlements WHERE tag = ? AND id = ?", tag, id);
  return row && toEntitlement(row, live);
}

export function toLedgerLine(row: Row): LedgerLine {
  return {
    seq: whole(row, "seq"),
    atMs: whole(row, "at"),
    kind: text(row, "kind") as LedgerLine["kind"],
    debit: text(row, "debit"),
    credit: text(row, "credit"),
    amount: nanoUsd(big(row, "amount")),
    balance: big(row, "bal"),
    reference: text(row, "ref"),
    group: text(row, "grp"),
    model: text(row, "model"),
    key: text(row, "key"),
    memo: text(row, "memo"),
  };
}

/** Appends a line within the running transaction; the balance after it is read from the account. */
export function appendLine(db: Database, tag: AccountTag, line: Omit<LedgerLine, "seq" | "balance">): void {
  db.run("UPDATE accounts SET seq = seq + 1 WHERE tag = ?", tag);
  db.run(
    `INSERT INTO ledger (tag, seq, at, kind, debit, credit, amount, bal, ref, grp, model, key, memo)
     SELECT tag, seq, ?, ?, ?, ?, ?, bal, ?, ?, ?, ?, ? FROM accounts WHERE tag = ?`,
    line.atMs,
    line.kind,
    line.debit,
    line.credit,
    line.amount,
    line.reference,
    line.group,
    line.model,
    line.key,
    line.memo,
    tag,
  );
}
