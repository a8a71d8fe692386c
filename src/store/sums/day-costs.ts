/**
 * What a settlement adds to the sums of its day, for both stores: what was charged and what it cost by group, model and
 * key, and what each upstream is expected to bill. The audit gets the same from the ledger lines and compares.
 */
import { type Memo, usageOfMemo } from "../../values/recompute.ts";
import { dayField, upstreamField } from "../names.ts";
import type { LedgerLine } from "../records.ts";
import { CUT_OVER_HOLD, type SettleAsk } from "../settlement.ts";
import { NO_USAGE_TOTAL, type UsageTotal } from "./day-sums.ts";
import { countsOf, countsOfRequest, NO_COUNTS, requestsOf, tokenSumsOf } from "./token-sums.ts";

/** How the store divided what the client owes: what was charged, and what the payer's funds did not cover. */
interface ChargeSplit {
  readonly charged: bigint;
  readonly absorbed: bigint;
}

type FieldTotals = [field: string, total: UsageTotal][];

/**
 * The sums by field of the day's sums, each field once, the group's field first. Empty for a settlement with no charge
 * and no cost.
 */
export function sumsOfSettlement(ask: SettleAsk, { charged, absorbed }: ChargeSplit): FieldTotals {
  const { costs, attempts, voided } = ask;
  if (voided && !costs?.length) return [];
  let rest = absorbed;
  for (const { cause, amount } of attempts ?? []) if (cause === CUT_OVER_HOLD) rest += amount;
  const group = {
    amount: charged,
    counts: voided ? NO_COUNTS : countsOfRequest(ask.tokens),
    cost: 0n,
    // Without costs it comes from an earlier version, and what was absorbed is unknown.
    absorbed: costs ? rest : 0n,
  };
  const sums: FieldTotals = [[dayField(ask.group, ask.model, ask.keyId), group]];
  for (const one of costs ?? []) {
    const { upstream, model, cost } = one;
    group.cost += cost;
    group.absorbed += one.absorbed;
    const amount = one.charged ? charged : 0n;
    const ofUpstream = one.charged ? one.absorbed + rest : one.absorbed;
    const counts = countsOf(one.tokens, one.requests);
    sums.push([upstreamField(upstream, model), { amount, counts, cost, absorbed: ofUpstream }]);
  }
  return sums;
}

/**
 * The sums that a line gives; lines of earlier versions give no costs. @param memo undefined for a line without one.
 */
export function sumsOfLine(line: LedgerLine, memo: Memo | undefined): FieldTotals {
  const { kind, amount, credit } = line;
  if (kind !== "usage" && kind !== "absorbed") return [];
  const field = dayField(line.group, line.model, line.key);
  const usage = memo && usageOfMemo(memo);
  const tokens = usage && tokenSumsOf(usage);
  const noted = memo && costOfMemo(memo);
  if (kind === "usage") {
    const total = { amount, counts: countsOfRequest(tokens), cost: noted?.cost ?? 0n, absorbed: 0n };
    return noted
      ? [
          [field, total],
          [noted.field, total],
        ]
      : [[field, total]];
  }
  if (!noted) return [];
  const absorbed = { ...NO_USAGE_TOTAL, absorbed: amount };
  // What the funds did not cover is owed to us; only the rest is on an upstream's bill.
  if (!credit.startsWith("upstream:"))
    return [
      [field, absorbed],
      [noted.field, absorbed],
    ];
  const counts = tokens ? { ...tokens, requests: requestsOf(tokens) } : NO_COUNTS;
  return [
    [field, { ...absorbed, cost: amount }],
    [noted.field, { ...absorbed, cost: amount, counts }],
  ];
}

function costOfMemo({ fields }: Memo): { readonly field: string; readonly cost: bigint } | undefined {
  const { cost, upstream, upstream_model: model } = fields ?? {};
  if (typeof cost !== "string" || !/^[0-9]{1,16}$/.test(cost)) return undefined;
  if (typeof upstream !== "string" || typeof model !== "string") return undefined;
  return { field: upstreamField(upstream, model), cost: BigInt(cost) };
}
