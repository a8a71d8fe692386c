/** Extending a hold: as far as what is free allows. `redis/lua/extend.lua` does the same, step by step. */
import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import type { ExtendAnswer, ExtendAsk } from "../extension.ts";
import { type HoldRecord, holdAmount, holdEntitlement, holdExpiresAtMs, holdUnmetered } from "../hold-record.ts";
import type { Context } from "./context.ts";
import { growHold, type Live, sweepHolds } from "./live.ts";
import { findEntitlement } from "./rows.ts";

export function extend(context: Context, ask: ExtendAsk): ExtendAnswer {
  const nowMs = context.nowMs();
  const account = context.account(ask.tag);
  if (account === undefined) return { outcome: "gone" };
  const live = context.live(ask.tag);
  sweepHolds(live, nowMs);
  const record = live.holds.get(ask.requestId);
  // A sweep has a limit: holds that it has left are expired too.
  if (record === undefined || holdExpiresAtMs(record) <= nowMs) return { outcome: "gone" };
  const held = holdAmount(record);
  // An entitlement without quota pays without a hold.
  if (held >= ask.target || holdUnmetered(record)) return { outcome: "held", hold: nanoUsd(held) };
  const free = freeFor(context, ask.tag, account.balance, live, record);
  const wanted = ask.target - held;
  const more = wanted < free ? wanted : free;
  if (more <= 0n) return { outcome: "held", hold: nanoUsd(held) };
  growHold(live, ask.requestId, record, more);
  return { outcome: "held", hold: nanoUsd(held + more) };
}

/** What the payer of the request has beyond all holds. */
function freeFor(context: Context, tag: AccountTag, balance: bigint, live: Live, record: HoldRecord): bigint {
  const entitlement = holdEntitlement(record);
  if (entitlement === undefined) return balance - live.held;
  const card = findEntitlement(context.db, tag, entitlement, live);
  return card?.quota === undefined ? 0n : card.quota - card.spent - card.held;
}
