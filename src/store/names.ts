/** Names that both stores must spell alike: limit scopes, ledger accounts, day sums. */
import type { AccountTag } from "../values/key.ts";
import { type AbsorbedAttempt, CUT_OVER_HOLD, type SettleAsk } from "./settlement.ts";

/** The most values of one key that work at the same time: the current one, and former ones until they end. */
export const KEY_VALUES_MAX = 8;

/** The scope in which limits count: the group of an account, or one key within it. */
export function limitScope(group: string, keyId: string, perKey: boolean): string {
  return perKey ? `${group}/${keyId}` : group;
}

/** The scope of a key's own rate limits; no group has this name. */
export const keyScope = (keyId: string): string => `*/${keyId}`;

/** The key of a scope; undefined for the scope of a group. */
export const keyOfScope = (scope: string): string | undefined => (scope.startsWith("*/") ? scope.slice(2) : undefined);

export const requestBucket = (scope: string): string => `${scope}:r`;
export const tokenBucket = (scope: string): string => `${scope}:t`;

/** The bucket of an account's unpaid requests. It has no colon, so it is no scope's bucket. */
export const LEFT_BUCKET = "left";

/** The bucket of an account's charges above their holds that exceeded funds or budgets. */
export const OVERRUN_BUCKET = "over";

/** The account's id, which is also its name in the ledger. */
export const accountId = (tag: AccountTag): string => `acct_${tag}`;
export const entitlementAccount = (id: string): string => `ent_${id}`;

/** Where the money of a kind of card comes from: sales outside the ledger, or gifts of the operator. */
export const cardsAccount = ({ card, gift }: { card: string; gift?: true | undefined }): string =>
  `${gift ? "gifts" : "cards"}:${card}`;

/** Field of a day's sums. */
export const dayField = (group: string, model: string, keyId: string): string => `${group}|${model}|${keyId}`;

/** Prefix of fields for an upstream and its model; no group begins with it. */
const UPSTREAM_MARK = "^";

/** The field of a day's sums for an upstream and its model. An upstream's name contains no "|". */
export const upstreamField = (upstream: string, model: string): string => `${UPSTREAM_MARK}${upstream}|${model}`;
export const isUpstreamField = (field: string): boolean => field.startsWith(UPSTREAM_MARK);

/** Upstream and model of such a field. */
export function partsOfUpstreamField(field: string): { readonly upstream: string; readonly model: string } {
  const bar = field.indexOf("|");
  return { upstream: field.slice(UPSTREAM_MARK.length, bar), model: field.slice(bar + 1) };
}

/**
 * Field of a day's counts; the name of a count contains no "|". Fields of an upstream begin with the mark, so that
 * versions without such sums ignore them.
 */
export const countField = (kind: string, field: string): string =>
  isUpstreamField(field) ? `${UPSTREAM_MARK}${kind}|${field.slice(UPSTREAM_MARK.length)}` : `${kind}|${field}`;

/** The double-entry accounts that a settlement may name. */
interface SettleAccounts {
  /** Who pays: the account or the entitlement. */
  readonly payer: string;
  readonly revenue: string;
  /** Who pays what neither the hold nor free funds covered. */
  readonly overHold: string;
  readonly absorbed: string;
  readonly upstream: string;
}

export function settleAccounts(ask: SettleAsk): SettleAccounts {
  return {
    payer: ask.entitlement === undefined ? accountId(ask.tag) : entitlementAccount(ask.entitlement),
    revenue: `revenue:${ask.group}`,
    overHold: "absorbed:over_hold",
    absorbed: `absorbed:${ask.absorbedCause ?? "unknown"}`,
    upstream: `upstream:${ask.upstream ?? "unknown"}`,
  };
}

/**
 * Debit and credit of a failed attempt that no client pays for, or of what exceeds the hold of an answer that broke
 * off.
 */
export function attemptAccounts(
  { cause, upstream }: AbsorbedAttempt,
  { group }: Pick<SettleAsk, "group">,
): { debit: string; credit: string } {
  return { debit: `absorbed:${cause}`, credit: cause === CUT_OVER_HOLD ? `revenue:${group}` : `upstream:${upstream}` };
}

/** Debit and credit of a payment: a negative amount leaves the account. */
export function creditAccounts(
  tag: AccountTag,
  payment: { kind: "topup" | "adjust"; amount: bigint },
): { debit: string; credit: string } {
  const account = accountId(tag);
  return payment.amount < 0n ? { debit: account, credit: payment.kind } : { debit: payment.kind, credit: account };
}
