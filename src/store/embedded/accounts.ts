/** Accounts of the embedded store: create, find, list, plan, payments. */
import type { AccountTag } from "../../values/key.ts";
import { NANO_USD_MAX, type NanoUsd, nanoUsd } from "../../values/money.ts";
import { PAGE_MAX, pageSize, TOTAL_MAX } from "../checks.ts";
import type { AccountBudgets, Store } from "../contract.ts";
import { creditAccounts } from "../names.ts";
import { type Account, type AccountChange, type AccountName, LABELS_MAX, type Page } from "../records.ts";
import { budgetsOfAccount } from "./budgets.ts";
import type { Context } from "./context.ts";
import { sweepHolds } from "./live.ts";
import { balanceNotice, noteNotice } from "./notices.ts";
import { appendLine, findAccountRow, toAccount } from "./rows.ts";

export function createAccount(
  context: Context,
  account: { tag: AccountTag; name: string; plan: string },
): Account | "exists" {
  const { db } = context;
  const nowMs = context.nowMs();
  const taken = db.get("SELECT 1 FROM accounts WHERE tag = ? OR name = ?", account.tag, account.name);
  if (taken !== undefined) return "exists";
  db.commitFull(() =>
    db.run(
      "INSERT INTO accounts (tag, name, plan, created) VALUES (?, ?, ?, ?)",
      account.tag,
      account.name,
      account.plan,
      nowMs,
    ),
  );
  return getAccount(context, account.tag) as Account;
}

export function getAccount(context: Context, tag: AccountTag): Account | undefined {
  const row = findAccountRow(context.db, tag);
  return row && toAccount(tag, row, context.live(tag));
}

export function findAccount(context: Context, name: string): Account | undefined {
  const row = context.db.get("SELECT tag FROM accounts WHERE name = ?", name);
  return row && getAccount(context, row.tag as AccountTag);
}

export function findAccountName(context: Context, name: string): AccountName | undefined {
  const row = context.db.get("SELECT tag FROM accounts WHERE name = ?", name);
  return row && { name, tag: row.tag as AccountTag };
}

/** Names and tags alone. */
export function listAccountNames(context: Context, cursor: string | undefined, limit: number): Page<AccountName> {
  const size = pageSize(limit, PAGE_MAX);
  const rows = context.db.all(
    "SELECT name, tag FROM accounts WHERE name > ? ORDER BY name LIMIT ?",
    cursor ?? "",
    size + 1,
  );
  const items = rows.slice(0, size).map((row) => ({ name: row.name as string, tag: row.tag as AccountTag }));
  return { items, next: rows.length > size ? items.at(-1)?.name : undefined };
}

/** The cursor is the last name of the page before. */
export function listAccounts(context: Context, cursor: string | undefined, limit: number): Page<Account> {
  const size = pageSize(limit, PAGE_MAX);
  const rows = context.db.all("SELECT tag FROM accounts WHERE name > ? ORDER BY name LIMIT ?", cursor ?? "", size + 1);
  const items = rows.slice(0, size).map((row) => getAccount(context, row.tag as AccountTag) as Account);
  return { items, next: rows.length > size ? items.at(-1)?.name : undefined };
}

export function setPlan(context: Context, tag: AccountTag, plan: string, replayed?: number): Account | undefined {
  const { db } = context;
  const row = findAccountRow(db, tag);
  if (row === undefined) return undefined;
  if (replayed !== undefined && replayed <= row.planRevision) return getAccount(context, tag);
  const revision = replayed ?? Math.max(row.planRevision + 1, context.nowMs());
  db.commitFull(() => db.run("UPDATE accounts SET plan = ?, plan_revision = ? WHERE tag = ?", plan, revision, tag));
  return getAccount(context, tag);
}

export function setAccountLimits(
  context: Context,
  tag: AccountTag,
  limits: string,
  replayed?: number,
): Account | undefined {
  const { db } = context;
  const row = findAccountRow(db, tag);
  if (row === undefined) return undefined;
  if (replayed !== undefined && replayed <= row.limitsRevision) return getAccount(context, tag);
  const revision = replayed ?? Math.max(row.limitsRevision + 1, context.nowMs());
  db.commitFull(() =>
    db.run("UPDATE accounts SET limits = ?, limits_revision = ? WHERE tag = ?", limits, revision, tag),
  );
  return getAccount(context, tag);
}

/** `redis/lua/account-change.lua` does the same. */
export function changeAccount(
  context: Context,
  tag: AccountTag,
  { status, labels }: AccountChange,
  replayed?: number,
): Account | "too_many" | undefined {
  const { db } = context;
  const before = getAccount(context, tag);
  if (before === undefined || before.status === "closed") return before;
  const counts = (known: number) => replayed === undefined || replayed > known;
  const revisionAfter = (known: number) => replayed ?? Math.max(known + 1, context.nowMs());
  const setsStatus = status !== undefined && counts(before.revision);
  const setsLabels = labels !== undefined && counts(before.labelsRevision);
  const kept = Object.entries(replayed === undefined ? { ...before.labels, ...labels } : { ...labels })
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1));
  if (setsLabels && kept.length > LABELS_MAX) return "too_many";
  if (!setsStatus && !setsLabels) return before;
  db.commitFull(() => {
    if (setsStatus) {
      const revision = revisionAfter(before.revision);
      db.run("UPDATE accounts SET status = ?, revision = ? WHERE tag = ?", status, revision, tag);
    }
    if (setsLabels) {
      const text = JSON.stringify(Object.fromEntries(kept));
      const revision = revisionAfter(before.labelsRevision);
      db.run("UPDATE accounts SET labels = ?, labels_revision = ? WHERE tag = ?", text, revision, tag);
    }
  });
  return getAccount(context, tag);
}

export function readAccountBudgets(context: Context, tag: AccountTag): AccountBudgets | undefined {
  return findAccountRow(context.db, tag) && budgetsOfAccount(context, tag);
}

export function setNotifyBelow(
  context: Context,
  tag: AccountTag,
  below: NanoUsd | undefined,
  replayed?: number,
): Account | undefined {
  const { db } = context;
  const row = findAccountRow(db, tag);
  if (row === undefined) return undefined;
  if (replayed !== undefined && replayed <= row.notifyRevision) return getAccount(context, tag);
  const revision = replayed ?? Math.max(row.notifyRevision + 1, context.nowMs());
  db.commitFull(() =>
    db.run("UPDATE accounts SET notify_below = ?, notify_revision = ? WHERE tag = ?", below ?? null, revision, tag),
  );
  return getAccount(context, tag);
}

/** `redis/names.ts` does the same in steps. */
export function renameAccount(
  context: Context,
  tag: AccountTag,
  name: string,
  replayed?: number,
): Account | "taken" | undefined {
  const { db } = context;
  const before = getAccount(context, tag);
  if (before === undefined || (before.status === "closed" && replayed === undefined)) return before;
  if (replayed !== undefined && replayed <= before.nameRevision) return before;
  if ((findAccountName(context, name)?.tag ?? tag) !== tag) return "taken";
  const revision = replayed ?? Math.max(before.nameRevision + 1, context.nowMs());
  db.commitFull(() => db.run("UPDATE accounts SET name = ?, name_revision = ? WHERE tag = ?", name, revision, tag));
  return getAccount(context, tag);
}

export function closeAccount(context: Context, tag: AccountTag, replayed?: number): Account | undefined {
  const { db } = context;
  const before = getAccount(context, tag);
  if (before === undefined) return undefined;
  const nowMs = context.nowMs();
  const isNew = before.status !== "closed";
  const revision = isNew ? Math.max(before.revision + 1, replayed ?? nowMs) : before.revision;
  db.commitFull(() => {
    db.run("UPDATE accounts SET status = 'closed', revision = ? WHERE tag = ?", revision, tag);
    db.run(
      "UPDATE keys SET status = 'revoked', revision = max(revision + 1, ?) WHERE tag = ? AND status <> 'revoked'",
      nowMs,
      tag,
    );
  });
  return getAccount(context, tag);
}

export function credit(
  context: Context,
  tag: AccountTag,
  payment: Parameters<Store["credit"]>[1],
): Awaited<ReturnType<Store["credit"]>> {
  const { db } = context;
  const nowMs = context.nowMs();
  const account = findAccountRow(db, tag);
  if (account === undefined) return { outcome: "unknown_account" };
  const paid = db.get("SELECT amount FROM payments WHERE tag = ? AND id = ?", tag, payment.id);
  if (paid !== undefined) {
    if (paid.amount !== payment.amount) return { outcome: "mismatch" };
    return { outcome: "duplicate", balance: nanoUsd(account.balance) };
  }
  if (account.status === "closed" && payment.amount > 0n && !payment.again) return { outcome: "closed" };
  const balance = account.balance + payment.amount;
  const live = context.live(tag);
  const isCovered = (): boolean => balance >= live.held;
  // An idle account may have expired holds: they keep no funds from being taken.
  while (payment.amount < 0n && !isCovered() && sweepHolds(live, nowMs));
  if (!isCovered() || balance > NANO_USD_MAX || account.topped + payment.amount > TOTAL_MAX)
    return { outcome: "refused" };
  db.commitFull(() => {
    db.run("UPDATE accounts SET bal = bal + ?1, topped = topped + ?1 WHERE tag = ?2", payment.amount, tag);
    db.run("INSERT INTO payments (tag, id, amount) VALUES (?, ?, ?)", tag, payment.id, payment.amount);
    const notice = balanceNotice(context, account, { balance, by: "adjustment", ref: payment.id });
    if (notice) noteNotice(context, tag, notice, nowMs);
    appendLine(db, tag, {
      atMs: nowMs,
      kind: payment.kind,
      ...creditAccounts(tag, payment),
      amount: nanoUsd(payment.amount < 0n ? -payment.amount : payment.amount),
      reference: payment.id,
      group: "",
      model: "",
      key: "",
      memo: payment.note,
    });
  });
  return { outcome: "credited", balance: nanoUsd(balance) };
}
