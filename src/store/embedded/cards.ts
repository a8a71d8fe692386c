/** Time cards of the embedded store: what an account has of them, and how it gets one. */

import type { AccountTag } from "../../values/key.ts";
import { ZERO } from "../../values/money.ts";
import type { Store } from "../contract.ts";
import { cardsAccount, entitlementAccount } from "../names.ts";
import type { Entitlement } from "../records.ts";
import { ENTITLEMENT_LINGER_MS } from "../settlement.ts";
import type { Context } from "./context.ts";
import { appendLine, findAccountRow, findEntitlement, listedEntitlements } from "./rows.ts";

type GrantAsk = Parameters<Store["grant"]>[1];

export function grant(context: Context, tag: AccountTag, ask: GrantAsk): Entitlement | undefined {
  const nowMs = context.nowMs();
  return context.db.commitFull(() => grantWithin(context, tag, ask, nowMs));
}

/** Gives a card within the running transaction; undefined when there is no such account. */
export function grantWithin(context: Context, tag: AccountTag, ask: GrantAsk, nowMs: number): Entitlement | undefined {
  const { db } = context;
  if (findAccountRow(db, tag) === undefined) return undefined;
  const known = findEntitlement(db, tag, ask.id, context.live(tag));
  if (known !== undefined) return known;
  listAgain(context, tag, nowMs);
  const fromMs = ask.fromMs ?? (ask.afterPrevious ? afterPrevious(context, tag, ask.group, nowMs) : nowMs);
  const untilMs = fromMs + ask.lastsMs;
  // Long after its end a card leaves the list that admission reads, so that long-time customers cost no more than new
  // ones.
  db.run("UPDATE entitlements SET listed = 0 WHERE tag = ? AND ends <= ?", tag, nowMs - ENTITLEMENT_LINGER_MS);
  db.run(
    "INSERT INTO entitlements (tag, id, card, plan, grp, starts, ends, quota) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    tag,
    ask.id,
    ask.card,
    ask.plan,
    ask.group,
    fromMs,
    untilMs,
    ask.quota ?? null,
  );
  appendLine(db, tag, {
    atMs: nowMs,
    kind: "card",
    debit: cardsAccount(ask),
    credit: entitlementAccount(ask.id),
    amount: ask.quota ?? ZERO,
    reference: ask.reference,
    group: ask.group,
    model: "",
    key: "",
    memo: "",
  });
  const { id, card, plan, group, quota } = ask;
  return { id, card, plan, group, fromMs, untilMs, quota, spent: ZERO, held: ZERO };
}

/** Lists cards again that left the list before their end, because the clock was ahead. */
export function listAgain({ db }: Context, tag: AccountTag, nowMs: number): void {
  db.run("UPDATE entitlements SET listed = 1 WHERE tag = ? AND listed = 0 AND ends > ?", tag, nowMs);
}

/** The end of the group's last listed card, or now. */
function afterPrevious(context: Context, tag: AccountTag, group: string, nowMs: number): number {
  const ends = listedEntitlements(context.db, tag, context.live(tag))
    .filter((e) => e.group === group)
    .map((e) => e.untilMs);
  return Math.max(nowMs, ...ends);
}

export function listCards(context: Context, tag: AccountTag, ended = false): Awaited<ReturnType<Store["listCards"]>> {
  const { db } = context;
  if (findAccountRow(db, tag) === undefined) return undefined;
  const nowMs = context.nowMs();
  const listed = listedEntitlements(db, tag, context.live(tag));
  const cards = ended ? listed : listed.filter((card) => card.untilMs > nowMs);
  return { cards, storeTimeMs: nowMs };
}
