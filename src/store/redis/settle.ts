/** Settlement on Redis: the ask as arguments of `lua/settle.lua`, its reply as an answer of the contract. */
import { nanoUsd } from "../../values/money.ts";
import { utcDay } from "../../values/time.ts";
import { attemptAccounts, countField, dayField, limitScope, settleAccounts } from "../names.ts";
import { SETTLE_HORIZON_MS, SETTLED_MARK_MS, type SettleAnswer, type SettleAsk } from "../settlement.ts";
import { COUNT_KINDS, countsOfRequest } from "../token-sums.ts";
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
import type { Runner } from "./runner.ts";
import type { Scripts } from "./scripts.ts";

export async function settle(runner: Runner, scripts: Scripts, ask: SettleAsk): Promise<SettleAnswer> {
  const { tag } = ask;
  const keys = [
    accountKey(tag),
    holdsKey(tag),
    expiriesKey(tag),
    settledKey(tag, ask.requestId),
    ledgerKey(tag),
    dayKey(tag, utcDay(ask.admittedAtMs)),
    dayCountsKey(tag, utcDay(ask.admittedAtMs)),
    ...(ask.idempotency ? [idempotencyKey(tag, ask.idempotency.key)] : []),
  ];
  const reply = await runner.script(scripts.settle, keys, settleArguments(ask));
  return toAnswer(reply as readonly string[]);
}

/** In the order in which the script reads them. */
function settleArguments(ask: SettleAsk): readonly string[] {
  const accounts = settleAccounts(ask);
  const day = dayField(ask.group, ask.model, ask.keyId);
  const grown = countsOfRequest(ask.tokens);
  const counts = COUNT_KINDS.filter((kind) => grown[kind] > 0);
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
    /* 20 */ day,
    /* 21 */ `${SETTLE_HORIZON_MS}`,
    /* 22 */ `${SETTLED_MARK_MS}`,
    /* 23 */ keptTexts(ask),
    /* 24 */ `${counts.length}`,
    /* 25 */ `${ask.attempts?.length ?? 0}`,
    /* 26, and on */ ...counts.map((kind) => countField(kind, day)),
    ...counts.map((kind) => `${grown[kind]}`),
    ...(ask.attempts ?? []).flatMap((attempt) => {
      const { debit, credit } = attemptAccounts(attempt);
      return [`${attempt.amount}`, debit, credit, attempt.memo];
    }),
    ...leftTexts(ask),
  ];
}

/** Fingerprint, state and end of the request's idempotency key as JSON, and the state once charged; empty without one. */
function keptTexts({ idempotency, voided }: SettleAsk): string {
  if (idempotency === undefined) return "";
  const charged = idempotency.streamed ? "streamed" : "finished";
  return JSON.stringify([idempotency.fingerprint, voided ? "voided" : charged, `${idempotency.untilMs}`, charged]);
}

function leftTexts({ leftUnpaid: left }: SettleAsk): readonly string[] {
  return left === undefined ? [""] : [`${left.allowance}`, `${left.amount}`, left.memo];
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
