/**
 * Settlement on Redis: turns the ask into arguments of `lua/settle.lua`, and its reply into an answer of the contract.
 */

import { isPlain } from "../../values/json-text.ts";
import { nanoUsd } from "../../values/money.ts";
import { utcDay } from "../../values/time.ts";
import { attemptAccounts, countField, dayField, limitScope, settleAccounts, upstreamField } from "../names.ts";
import { type NoticeWriter, termsText } from "../notices.ts";
import {
  chargedInstead,
  SETTLE_HORIZON_MS,
  SETTLED_MARK_MS,
  type SettleAnswer,
  type SettleAsk,
  type UpstreamCost,
} from "../settlement.ts";
import { sumsOfSettlement } from "../sums/day-costs.ts";
import { COUNT_KINDS } from "../sums/token-sums.ts";
import { escapedList, listText } from "./connection/encode.ts";
import type { Runner } from "./connection/runner.ts";
import {
  accountKey,
  dayCountsKey,
  dayKey,
  expiriesKey,
  holdsKey,
  idempotencyKey,
  ledgerKey,
  settledKey,
} from "./keys.ts";
import type { Scripts } from "./scripts.ts";

const HORIZON = `${SETTLE_HORIZON_MS}`;
const MARK = `${SETTLED_MARK_MS}`;

export async function settle(
  runner: Runner,
  scripts: Scripts,
  ask: SettleAsk,
  notices: NoticeWriter | undefined,
): Promise<SettleAnswer> {
  const { tag } = ask;
  const day = utcDay(ask.admittedAtMs);
  const keys = [
    accountKey(tag),
    holdsKey(tag),
    expiriesKey(tag),
    settledKey(tag, ask.requestId),
    ledgerKey(tag),
    dayKey(tag, day),
    dayCountsKey(tag, day),
  ];
  if (ask.idempotency) keys.push(idempotencyKey(tag, ask.idempotency.key));
  // The memo is by far the longest text, and as a value of its own it needs no escaping.
  const values = [askText(ask), ask.memo, termsText(notices?.terms())];
  const reply = (await runner.script(scripts.settle, keys, values)) as string | readonly string[];
  const parts = typeof reply === "string" ? reply.split(" ") : reply;
  if (parts[4] === "1") notices?.noted(tag);
  return toAnswer(parts);
}

/**
 * The ask as one text. Short names are checked for escapes before longer texts are built from them. Rare texts that
 * contain quotes are left to JSON.stringify.
 */
function askText(ask: SettleAsk): string {
  const texts = settleTexts(ask);
  const { group, model, keyId, entitlement = "", absorbedCause = "", upstream = "", counted = "", costs = [] } = ask;
  const ofRequest = isPlain(group) && isPlain(model) && isPlain(keyId) && isPlain(entitlement) && isPlain(counted);
  const ofUpstream = isPlain(upstream) && isPlain(absorbedCause) && costs.every(hasPlainNames);
  const isCommon = !(ask.attempts?.length || ask.leftUnpaid || ask.idempotency);
  return isCommon && ofRequest && ofUpstream ? listText(texts) : escapedList(texts);
}

function hasPlainNames({ upstream, model }: UpstreamCost): boolean {
  return isPlain(upstream) && isPlain(model);
}

/** In the order in which the script reads them. */
function settleTexts(ask: SettleAsk): readonly string[] {
  const accounts = settleAccounts(ask);
  const counts = countsOf(ask);
  const { group, model, keyId } = ask;
  const texts = [
    /* 1 */ ask.requestId,
    /* 2 */ `${ask.admittedAtMs}`,
    /* 3 */ ask.entitlement ?? "",
    /* 4 */ `${ask.amount}`,
    /* 5 */ `${ask.absorbed}`,
    /* 6 */ `${ask.tokensTaken}`,
    /* 7 */ `${ask.tokensUsed}`,
    /* 8 */ `${ask.tokensPerMinute ?? ""}`,
    /* 9 */ ask.voided ? "1" : "0",
    /* 10 */ limitScope(group, keyId, ask.perKey),
    /* 11 */ accounts.payer,
    /* 12 */ accounts.revenue,
    /* 13 */ accounts.overHold,
    /* 14 */ accounts.absorbed,
    /* 15 */ accounts.upstream,
    /* 16 */ group,
    /* 17 */ model,
    /* 18 */ keyId,
    /* 19 */ dayField(group, model, keyId),
    /* 20 */ HORIZON,
    /* 21 */ MARK,
    /* 22 */ keptTexts(ask),
    /* 23 */ `${counts.fields.length}`,
    /* 24 */ `${ask.attempts?.length ?? 0}`,
    /* 25 */ ask.counted ?? "",
  ];
  /* 26, and on */
  addCounts(texts, counts);
  for (const attempt of ask.attempts ?? []) {
    const { debit, credit } = attemptAccounts(attempt, ask);
    texts.push(`${attempt.amount}`, debit, credit, attempt.memo);
  }
  addLeft(texts, ask);
  return texts;
}

/** Fields of the day's counts, and their increments. */
interface Counts {
  readonly fields: string[];
  readonly grown: string[];
  /** Whether the script has to compute the last three. */
  readonly isOpen: boolean;
}

/** In the order in which the script reads them: whether the last three are open, all fields, and all increments. */
function addCounts(texts: string[], { fields, grown, isOpen }: Counts): void {
  texts.push(isOpen ? "1" : "0");
  for (const field of fields) texts.push(field);
  for (const more of grown) texts.push(more);
}

/**
 * Only what grows. If a cost is charged for, the last three fields get an increment that the script computes: the
 * charge for the upstream, and what is absorbed by group and by upstream.
 */
function countsOf(ask: SettleAsk): Counts {
  const payer = ask.costs?.find(({ charged }) => charged);
  const group = dayField(ask.group, ask.model, ask.keyId);
  const paying = payer && upstreamField(payer.upstream, payer.model);
  const counts: Counts = { fields: [], grown: [], isOpen: payer !== undefined };
  let absorbedByGroup = 0n;
  let absorbedByPaying = 0n;
  for (const [field, sums] of sumsOfSettlement(ask, { charged: 0n, absorbed: 0n })) {
    for (const kind of COUNT_KINDS) grow(counts, kind, field, sums.counts[kind]);
    grow(counts, "cost", field, sums.cost);
    if (paying !== undefined && field === group) absorbedByGroup = sums.absorbed;
    else if (field === paying) absorbedByPaying = sums.absorbed;
    else grow(counts, "absorbed", field, sums.absorbed);
  }
  if (paying !== undefined) {
    counts.fields.push(countField("charged", paying), countField("absorbed", group), countField("absorbed", paying));
    counts.grown.push("0", `${absorbedByGroup}`, `${absorbedByPaying}`);
  }
  return counts;
}

function grow({ fields, grown }: Counts, kind: string, field: string, more: number | bigint): void {
  if (!(more > 0)) return;
  fields.push(countField(kind, field));
  grown.push(`${more}`);
}

/**
 * Fingerprint, state and end of the request's idempotency key as JSON, and the state after a charge; empty without one.
 */
function keptTexts({ idempotency, voided }: SettleAsk): string {
  if (idempotency === undefined) return "";
  const charged = idempotency.streamed ? "streamed" : "finished";
  return JSON.stringify([idempotency.fingerprint, voided ? "voided" : charged, `${idempotency.untilMs}`, charged]);
}

/** What is charged instead of the absorption, and the number and list of counts that then grow. */
function addLeft(texts: string[], ask: SettleAsk): void {
  const { leftUnpaid: left } = ask;
  if (left === undefined) {
    texts.push("");
    return;
  }
  const counts = countsOf(chargedInstead(ask, left));
  texts.push(`${left.allowance}`, `${left.amount}`, left.memo, `${counts.fields.length}`);
  addCounts(texts, counts);
}

function toAnswer(reply: readonly string[]): SettleAnswer {
  const [outcome, first = "0", absorbed = "0", balance = "0"] = reply;
  switch (outcome) {
    case "settled":
      return {
        outcome,
        charged: nanoUsd(BigInt(first)),
        absorbed: nanoUsd(BigInt(absorbed)),
        balance: nanoUsd(BigInt(balance)),
      };
    case "mismatch":
    case "half_written":
      return { outcome, recorded: nanoUsd(BigInt(first)) };
    case "duplicate":
    case "stale":
    case "unknown_account":
      return { outcome };
    default:
      throw new TypeError(`settle.lua replied ${outcome}`);
  }
}
