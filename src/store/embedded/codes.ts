/**
 * Codes of the embedded store. Code and account are in one database, so that claim, credit and end are one transaction:
 * there is nothing between them that a crash could leave.
 */

import type { CodeHash } from "../../values/code.ts";
import type { AccountTag } from "../../values/key.ts";
import { nanoUsd, ZERO } from "../../values/money.ts";
import { PAGE_MAX, pageSize } from "../checks.ts";
import type { Store } from "../contract.ts";
import { cardsAccount, entitlementAccount } from "../names.ts";
import type { CardFacts, Code, Entitlement, Page, RedeemAnswer } from "../records.ts";
import { ENTITLEMENT_LINGER_MS } from "../settlement.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database.ts";
import { appendLine, findAccountRow, findEntitlement, listedEntitlements } from "./rows.ts";

export function createCodes(
  context: Context,
  facts: CardFacts,
  codes: readonly { id: string; hash: CodeHash }[],
): void {
  const nowMs = context.nowMs();
  const { card, plan, group, lastsMs, starts, quota } = facts;
  context.db.commitFull(() => {
    for (const { id, hash } of codes) {
      context.db.run(
        `INSERT INTO codes (hash, id, card, plan, grp, lasts, starts, quota, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO NOTHING`,
        hash,
        id,
        card,
        plan,
        group,
        lastsMs,
        starts,
        quota ?? null,
        nowMs,
      );
    }
  });
}

/** The cursor is the last id of the page before. */
export function listCodes(context: Context, cursor: string | undefined, limit: number): Page<Code> {
  const size = pageSize(limit, PAGE_MAX);
  const rows = context.db.all("SELECT * FROM codes WHERE id > ? ORDER BY id LIMIT ?", cursor ?? "", size + 1);
  const items = rows.slice(0, size).map(toCode);
  return { items, next: rows.length > size ? items.at(-1)?.id : undefined };
}

export function getCode(context: Context, id: string): Code | undefined {
  const row = context.db.get("SELECT * FROM codes WHERE id = ?", id);
  return row && toCode(row);
}

export function voidCode(context: Context, id: string): Code | undefined {
  const code = getCode(context, id);
  if (code?.state !== "unused") return code;
  context.db.commitFull(() => context.db.run("UPDATE codes SET state = 'void' WHERE id = ?", id));
  return { ...code, state: "void" };
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
  const card = { ...code, afterPrevious: code.starts === "after_previous", reference: code.id, fromMs };
  const entitlement = db.commitFull(() => {
    if (fresh) db.run("UPDATE codes SET state = 'redeemed', tag = ?, claimed = ? WHERE hash = ?", tag, nowMs, hash);
    return grantWithin(context, tag, card, nowMs);
  });
  if (entitlement === undefined) throw new Error("an account is gone within a transaction");
  const redeemed: Code = fresh ? { ...code, state: "redeemed", tag, claimedAtMs: nowMs } : code;
  return { outcome: fresh ? "redeemed" : "again", code: redeemed, entitlement };
}

function toCode(row: Row): Code {
  return {
    id: row.id as string,
    card: row.card as string,
    plan: row.plan as string,
    group: row.grp as string,
    lastsMs: Number(row.lasts),
    starts: row.starts as Code["starts"],
    quota: row.quota === null ? undefined : nanoUsd(row.quota as bigint),
    state: row.state as Code["state"],
    createdAtMs: Number(row.created),
    tag: (row.tag ?? undefined) as AccountTag | undefined,
    claimedAtMs: row.claimed === null ? undefined : Number(row.claimed),
  };
}

/* Time cards of the embedded store: what an account has of them, and how one comes to it. */

type GrantAsk = Parameters<Store["grant"]>[1];

export function grant(context: Context, tag: AccountTag, ask: GrantAsk): Entitlement | undefined {
  const nowMs = context.nowMs();
  return context.db.commitFull(() => grantWithin(context, tag, ask, nowMs));
}

/** Gives a card within the running transaction. */
function grantWithin(context: Context, tag: AccountTag, ask: GrantAsk, nowMs: number): Entitlement | undefined {
  const { db } = context;
  if (findAccountRow(db, tag) === undefined) return undefined;
  const known = findEntitlement(db, tag, ask.id, context.live(tag));
  if (known !== undefined) return known;
  const fromMs = ask.fromMs ?? (ask.afterPrevious ? afterPrevious(context, tag, ask.group, nowMs) : nowMs);
  const untilMs = fromMs + ask.lastsMs;
  // Long after its end a card leaves the list that admission reads, so that old customers cost no more than new ones.
  db.run("UPDATE entitlements SET listed = 0 WHERE tag = ? AND ends <= ?", tag, nowMs - ENTITLEMENT_LINGER_MS);
  db.run(
    "INSERT INTO entitlements (tag, id, plan, grp, starts, ends, quota) VALUES (?, ?, ?, ?, ?, ?, ?)",
    tag,
    ask.id,
    ask.plan,
    ask.group,
    fromMs,
    untilMs,
    ask.quota ?? null,
  );
  appendLine(db, tag, {
    atMs: nowMs,
    kind: "card",
    debit: cardsAccount(ask.card),
    credit: entitlementAccount(ask.id),
    amount: ask.quota ?? ZERO,
    reference: ask.reference,
    group: ask.group,
    model: "",
    key: "",
    memo: "",
  });
  return { id: ask.id, plan: ask.plan, group: ask.group, fromMs, untilMs, quota: ask.quota, spent: ZERO, held: ZERO };
}

/** The end of the group's last listed card, or now. */
function afterPrevious(context: Context, tag: AccountTag, group: string, nowMs: number): number {
  const ends = listedEntitlements(context.db, tag, context.live(tag))
    .filter((e) => e.group === group)
    .map((e) => e.untilMs);
  return Math.max(nowMs, ...ends);
}

export function listCards(context: Context, tag: AccountTag): Awaited<ReturnType<Store["listCards"]>> {
  const { db } = context;
  if (findAccountRow(db, tag) === undefined) return undefined;
  const nowMs = context.nowMs();
  const cards = listedEntitlements(db, tag, context.live(tag)).filter((card) => card.untilMs > nowMs);
  return { cards, storeTimeMs: nowMs };
}
