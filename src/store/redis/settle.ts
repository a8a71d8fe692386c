/** Settlement on Redis: the ask as arguments of `lua/settle.lua`, its reply as an answer of the contract. */
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
  const values = [JSON.stringify(settleArguments(ask)), termsText(notices?.terms())];
  const reply = (await runner.script(scripts.settle, keys, values)) as string | readonly string[];
  const said = typeof reply === "string" ? reply.split(" ") : reply;
  if (said[4] === "1") notices?.noted(tag);
  return toAnswer(said);
}

/** In the order in which the script reads them. */
function settleArguments(ask: SettleAsk): readonly string[] {
  const accounts = settleAccounts(ask);
  const counts = countsOf(ask);
  return [
    /* 1 */ ask.requestId,
    /* 2 */ `${ask.admittedAtMs}`,
    /* 3 */ ask.entitlement ?? "",
    /* 4 */ `${ask.amount}`,
    /* 5 */ `${ask.absorbed}`,
    /* 6 */ `${ask.tokensTaken}`,
    /* 7 */ `${ask.tokensUsed}`,
    /* 8 */ `${ask.tokensPerMinute ?? ""}`,
    /* 9 */ ask.voided ? "1" : "0",
    /* 10 */ limitScope(ask.group, ask.keyId, ask.perKey),
    /* 11 */ accounts.payer,
    /* 12 */ accounts.revenue,
    /* 13 */ accounts.overHold,
    /* 14 */ accounts.absorbed,
    /* 15 */ accounts.upstream,
    /* 16 */ ask.group,
    /* 17 */ ask.model,
    /* 18 */ ask.keyId,
    /* 19 */ ask.memo,
    /* 20 */ dayField(ask.group, ask.model, ask.keyId),
    /* 21 */ `${SETTLE_HORIZON_MS}`,
    /* 22 */ `${SETTLED_MARK_MS}`,
    /* 23 */ keptTexts(ask),
    /* 24 */ `${counts.length}`,
    /* 25 */ `${ask.attempts?.length ?? 0}`,
    /* 26 */ ask.counted ?? "",
    /* 27, and on */ ...countTexts(ask, counts),
    ...(ask.attempts ?? []).flatMap((attempt) => {
      const { debit, credit } = attemptAccounts(attempt, ask);
      return [`${attempt.amount}`, debit, credit, attempt.memo];
    }),
    ...leftTexts(ask),
  ];
}

type CounterIncrements = readonly [field: string, grown: number | bigint][];

/** What the request's charge is for, where anything is said of that. */
function payerOf({ costs }: SettleAsk): UpstreamCost | undefined {
  return costs?.find(({ charged }) => charged);
}

/** Whether the script has to work out the last three counts; all fields, and by what each grows. */
function countTexts(ask: SettleAsk, counts: CounterIncrements): readonly string[] {
  return [payerOf(ask) ? "1" : "0", ...counts.map(([field]) => field), ...counts.map(([, grown]) => `${grown}`)];
}

/**
 * Fields of the day's counts, and by what each grows. The last three, where a cost is charged for, are those that get a part
 * of what the script works out: what its upstream has of the charge, and what is absorbed by group and by upstream.
 */
function countsOf(ask: SettleAsk): CounterIncrements {
  const payer = payerOf(ask);
  const group = dayField(ask.group, ask.model, ask.keyId);
  const paying = payer && upstreamField(payer.upstream, payer.model);
  const plain: [field: string, grown: number | bigint][] = [];
  const open: [field: string, grown: number | bigint][] = [];
  for (const [field, { counts, cost, absorbed }] of sumsOfSettlement(ask, { charged: 0n, absorbed: 0n })) {
    for (const kind of COUNT_KINDS) plain.push([countField(kind, field), counts[kind]]);
    plain.push([countField("cost", field), cost]);
    if (field === paying) open.push([countField("charged", field), 0n]);
    const isOpen = paying !== undefined && (field === group || field === paying);
    (isOpen ? open : plain).push([countField("absorbed", field), absorbed]);
  }
  const [absorbed, ...ofUpstream] = open;
  const shares = absorbed ? [...ofUpstream.slice(0, 1), absorbed, ...ofUpstream.slice(1)] : [];
  return [...plain.filter(([, grown]) => grown > 0), ...shares];
}

/** Fingerprint, state and end of the request's idempotency key as JSON, and the state once charged; empty without one. */
function keptTexts({ idempotency, voided }: SettleAsk): string {
  if (idempotency === undefined) return "";
  const charged = idempotency.streamed ? "streamed" : "finished";
  return JSON.stringify([idempotency.fingerprint, voided ? "voided" : charged, `${idempotency.untilMs}`, charged]);
}

/** What is charged in place of the absorption, and how many counts grow then, and which. */
function leftTexts(ask: SettleAsk): readonly string[] {
  const { leftUnpaid: left } = ask;
  if (left === undefined) return [""];
  const charged = chargedInstead(ask, left);
  const counts = countsOf(charged);
  return [`${left.allowance}`, `${left.amount}`, left.memo, `${counts.length}`, ...countTexts(charged, counts)];
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
