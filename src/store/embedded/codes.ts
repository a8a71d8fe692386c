/**
 * Codes of the embedded store. Code and account are in one database, so claim, credit and end are one transaction, and
 * a crash cannot leave an intermediate state.
 */

import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { PAGE_MAX, pageSize } from "../checks.ts";
import type { Store } from "../contract.ts";
import type { CardFacts, Code, CodeBatch, Page, RedeemAnswer } from "../records.ts";
import { grantWithin } from "./cards.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database/database.ts";
import { findAccountRow, instantOrNone } from "./rows.ts";

export function createCodes(
  context: Context,
  ...[facts, codes, batch]: Parameters<Store["createCodes"]>
): "made" | "taken" {
  const nowMs = context.nowMs();
  const { card, plan, group, lastsMs, starts, quota, expiresAtMs, batch: batchId } = facts;
  const worth = [card, plan, group, lastsMs, starts, quota ?? null, expiresAtMs ?? null, nowMs] as const;
  return context.db.commitFull(() => {
    const stored = context.db.get("SELECT hash FROM codes WHERE id = ?", codes[0]?.id ?? "");
    if (stored && stored.hash !== codes[0]?.hash) return "taken";
    if (batchId !== undefined && batch !== undefined) {
      context.db.run(
        `INSERT INTO code_batches (id, label, count, card, plan, grp, lasts, starts, quota, expires, created)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        batchId,
        batch.label,
        batch.count,
        ...worth,
      );
    }
    for (const { id, hash } of codes) {
      context.db.run(
        `INSERT INTO codes (hash, id, batch, card, plan, grp, lasts, starts, quota, expires, created)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        hash,
        id,
        batchId ?? null,
        ...worth,
      );
    }
    return "made";
  });
}

/** The cursor is the last id of the page before. */
export function listCodes(context: Context, cursor: string | undefined, limit: number): Page<Code> {
  const size = pageSize(limit, PAGE_MAX);
  const rows = context.db.all("SELECT * FROM codes WHERE id > ? ORDER BY id LIMIT ?", cursor ?? "", size + 1);
  return pageOf(rows.map(toCode), size);
}

/** @param items one item more than the page, when there are more. */
function pageOf<T extends { readonly id: string }>(items: readonly T[], size: number): Page<T> {
  return { items: items.slice(0, size), next: items.length > size ? items[size - 1]?.id : undefined };
}

export function getBatch(context: Context, id: string): CodeBatch | undefined {
  const row = context.db.get("SELECT * FROM code_batches WHERE id = ?", id);
  return row && toBatch(row);
}

export function listBatches(context: Context, cursor: string | undefined, limit: number): Page<CodeBatch> {
  const size = pageSize(limit, PAGE_MAX);
  const rows = context.db.all("SELECT * FROM code_batches WHERE id > ? ORDER BY id LIMIT ?", cursor ?? "", size + 1);
  return pageOf(rows.map(toBatch), size);
}

export function listBatchCodes(context: Context, batch: string, cursor: string | undefined, limit: number): Page<Code> {
  const size = pageSize(limit, PAGE_MAX);
  const sql = "SELECT * FROM codes WHERE batch = ? AND id > ? ORDER BY id LIMIT ?";
  return pageOf(context.db.all(sql, batch, cursor ?? "", size + 1).map(toCode), size);
}

export function getCode(context: Context, id: string): Code | undefined {
  const row = context.db.get("SELECT * FROM codes WHERE id = ?", id);
  return row && toCode(row);
}

export function voidCode(context: Context, id: string): Code | undefined {
  return voidCodes(context, [id])[0];
}

export function voidCodes(context: Context, ids: readonly string[]): Code[] {
  const codes = ids.map((id) => getCode(context, id)).filter((code) => code !== undefined);
  const unused = codes.filter(({ state }) => state === "unused");
  if (unused.length === 0) return codes;
  context.db.commitFull(() => {
    for (const { id } of unused) context.db.run("UPDATE codes SET state = 'void' WHERE id = ?", id);
  });
  return codes.map((code) => (code.state === "unused" ? { ...code, state: "void" } : code));
}

export function redeem(context: Context, { hash, tag, fromMs }: Parameters<Store["redeem"]>[0]): RedeemAnswer {
  const { db } = context;
  const nowMs = context.nowMs();
  const row = db.get("SELECT * FROM codes WHERE hash = ?", hash);
  if (row === undefined) return { outcome: "unknown_code" };
  const code = toCode(row);
  if (code.state === "void") return { outcome: "void" };
  if (code.tag !== undefined && code.tag !== tag) return { outcome: "used" };
  const account = findAccountRow(db, tag);
  if (account === undefined) return { outcome: "unknown_account" };
  const fresh = code.state === "unused";
  if (account.status === "closed" && fresh && fromMs === undefined) return { outcome: "closed_account" };
  // A replayed redemption was in time.
  if (fresh && fromMs === undefined && nowMs >= (code.expiresAtMs ?? Number.POSITIVE_INFINITY)) {
    return { outcome: "expired" };
  }
  const card = { ...code, afterPrevious: code.starts === "after_previous", reference: code.id, fromMs };
  const entitlement = db.commitFull(() => {
    if (fresh) db.run("UPDATE codes SET state = 'redeemed', tag = ?, claimed = ? WHERE hash = ?", tag, nowMs, hash);
    return grantWithin(context, tag, card, nowMs);
  });
  if (entitlement === undefined) throw new Error("an account disappeared within a transaction");
  const redeemed: Code = fresh ? { ...code, state: "redeemed", tag, claimedAtMs: nowMs } : code;
  return { outcome: fresh ? "redeemed" : "again", code: redeemed, entitlement };
}

function toCode(row: Row): Code {
  return {
    id: row.id as string,
    ...worthOf(row),
    batch: (row.batch ?? undefined) as string | undefined,
    state: row.state as Code["state"],
    tag: (row.tag ?? undefined) as AccountTag | undefined,
    claimedAtMs: instantOrNone(row.claimed),
  };
}

function toBatch(row: Row): CodeBatch {
  return { id: row.id as string, label: row.label as string, count: Number(row.count), ...worthOf(row) };
}

/** What a code and a batch have in common. */
function worthOf(row: Row): CardFacts & Pick<Code, "expiresAtMs" | "createdAtMs"> {
  return {
    card: row.card as string,
    plan: row.plan as string,
    group: row.grp as string,
    lastsMs: Number(row.lasts),
    starts: row.starts as Code["starts"],
    quota: row.quota === null ? undefined : nanoUsd(row.quota as bigint),
    expiresAtMs: instantOrNone(row.expires),
    createdAtMs: Number(row.created),
  };
}
