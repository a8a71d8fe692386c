/**
 * A ledger line as the owner of the account sees it: what was charged and how it is computed. It leaves out what the
 * request cost the operator, what was absorbed, which upstream answered, and operators' notes. Members are copied one
 * by one, so that new members of a memo are left out by default.
 */
import { accountId, entitlementAccount } from "../../store/names.ts";
import type { LedgerLine } from "../../store/records.ts";
import type { AccountTag } from "../../values/key.ts";
import { formatUsd, parseNano } from "../../values/money.ts";
import { attemptsOf, type Memo, readMemo, recompute, usageOfMemo } from "../../values/recompute.ts";
import { printReference } from "../../values/request-id.ts";
import type { OwnChargeAnswer, OwnLineAnswer, OwnTryAnswer } from "../answers/own-usage.ts";

const ENTITLEMENT = entitlementAccount("");
/** Decimal digits of the product of nano-dollars per million tokens and a number of tokens. */
const PRODUCT_DIGITS = 15;

/** Whether owners see the line. Absorbed amounts concern only the operator and the upstream. */
export const isOwn = ({ kind }: LedgerLine): boolean => kind !== "absorbed";

export function showOwnLine(line: LedgerLine, tag: AccountTag): OwnLineAnswer {
  const account = accountId(tag);
  const isCharge = line.kind === "usage";
  const change = line.credit === account ? line.amount : line.debit === account ? -line.amount : 0n;
  return {
    seq: line.seq,
    at: new Date(line.atMs).toISOString(),
    kind: line.kind as OwnLineAnswer["kind"],
    usd: formatUsd(line.amount),
    change_usd: formatUsd(line.kind === "opening" ? 0n : change),
    balance_usd: formatUsd(line.balance),
    reference: isCharge ? printReference(line.reference) : line.reference,
    paid_by: isCharge ? (line.debit === account ? "balance" : line.debit) : null,
    group: line.group,
    model: line.model,
    key: line.key,
    charge: isCharge ? chargeOf(line) : null,
  };
}

/** The attempts in the memo of a line, including absorbed ones: how each ended, without its upstream and cost. */
export function triesOf(memo: string): readonly OwnTryAnswer[] {
  return (attemptsOf(memo) ?? []).map(({ outcome, status, paidBy, why }) => ({
    outcome,
    status: status ?? null,
    charged: paidBy === "client",
    why,
  }));
}

function chargeOf(line: LedgerLine): OwnChargeAnswer | null {
  const memo = readMemo(line.memo);
  const [usage, computed] = [usageOfMemo(memo), recompute(memo)];
  if (!usage || !computed) return null;
  const text = (name: string) => (typeof memo.fields?.[name] === "string" ? (memo.fields[name] as string) : "");
  const priced = (kind: string, tokens: number) => {
    const price = nano(text(`price_${kind}`));
    return { kind, count: tokens, price_usd: formatUsd(price), usd: productUsd(BigInt(tokens) * price) };
  };
  return {
    tokens: [
      priced("input", usage.input),
      priced("cached_input", usage.cachedInput),
      priced("cache_write", usage.cacheWrite),
      priced("cache_write_1h", usage.cacheWrite1h),
      priced("output", usage.output),
    ],
    calls: Object.entries(usage.toolCalls).map(([kind, calls]) => {
      const price = nano(toolPrice(memo, kind));
      return { kind, count: calls, price_usd: formatUsd(price), usd: formatUsd(BigInt(calls) * price) };
    }),
    reasoning_tokens: usage.reasoning,
    multiplier: formatUsd(nano(text("multiplier")) * 1_000n),
    tier: text("tier") || null,
    computed_usd: formatUsd(computed.cost),
    hold_usd: formatUsd(nano(text("hold"))),
    held_dearest: text("held") === "dearest",
    counted: text("counted"),
    ended: text("ended"),
    left_too_often: text("paid") === "allowance_used",
    why: whyOf(line, computed),
  };
}

function whyOf({ amount, debit }: LedgerLine, { cost, owed }: { cost: bigint; owed: bigint }): OwnChargeAnswer["why"] {
  if (amount === owed) return owed === cost ? "exact" : "hold";
  if (amount === 0n && debit.startsWith(ENTITLEMENT)) return "card";
  return amount < owed ? "funds" : "line";
}

/** Prints a product exactly, however small. @param product of tokens and nano-dollars per million tokens */
function productUsd(product: bigint): string {
  const digits = product.toString().padStart(PRODUCT_DIGITS + 1, "0");
  const at = digits.length - PRODUCT_DIGITS;
  return `${digits.slice(0, at)}.${digits.slice(at).replace(/0{1,13}$/, "")}`;
}

const nano = (text: string): bigint => parseNano(text) ?? 0n;

function toolPrice({ fields }: Memo, tool: string): string {
  const price = (fields?.price_tools as Readonly<Record<string, unknown>> | undefined)?.[tool];
  return typeof price === "string" ? price : "0";
}
