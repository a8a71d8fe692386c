/**
 * Names that both stores must spell alike: limit scopes, ledger accounts, day sums.
 */
import type { AccountTag } from "../values/key.ts";
import { type AbsorbedAttempt, CUT_OVER_HOLD, type SettleAsk } from "./settlement.ts";

/** Values of one key that work at one time: the one it has, and those it had, until their ends. */
export const KEY_VALUES_MAX = 8;

/** Where limits count: the group of an account, or one key within it. */
export function limitScope(group: string, keyId: string, perKey: boolean): string {
  return perKey ? `${group}/${keyId}` : group;
}

/** Where the rate limits of a key itself count; no group is called so. */
export const keyScope = (keyId: string): string => `*/${keyId}`;

/** Whose scope it is; undefined for that of a group. */
export const keyOfScope = (scope: string): string | undefined => (scope.startsWith("*/") ? scope.slice(2) : undefined);

export const requestBucket = (scope: string): string => `${scope}:r`;
export const tokenBucket = (scope: string): string => `${scope}:t`;

/** The bucket of what an account's clients have left unpaid: no scope's, since it has no colon. */
export const LEFT_BUCKET = "left";

/** The bucket of an account's charges above their holds that went beyond funds or budgets. */
export const OVERRUN_BUCKET = "over";

/** The account's id, which is also its name in the ledger. */
export const accountId = (tag: AccountTag): string => `acct_${tag}`;
export const entitlementAccount = (id: string): string => `ent_${id}`;

/** Where the money of a kind of card comes from: what was sold outside of the ledger, or what the operator gives away. */
export const cardsAccount = ({ card, gift }: { card: string; gift?: true | undefined }): string =>
  `${gift ? "gifts" : "cards"}:${card}`;

/** Field of a day's sums. */
export const dayField = (group: string, model: string, keyId: string): string => `${group}|${model}|${keyId}`;

/** Before the names of an upstream and its model; no group begins with it. */
const UPSTREAM_MARK = "^";

/** The field under which a day's sums of an upstream and its model are spoken of; an upstream's name has no bar in it. */
export const upstreamField = (upstream: string, model: string): string => `${UPSTREAM_MARK}${upstream}|${model}`;
export const isUpstreamField = (field: string): boolean => field.startsWith(UPSTREAM_MARK);

/** Upstream and model of such a field. */
export function partsOfUpstreamField(field: string): { readonly upstream: string; readonly model: string } {
  const bar = field.indexOf("|");
  return { upstream: field.slice(UPSTREAM_MARK.length, bar), model: field.slice(bar + 1) };
}

/**
 * Field of a day's counts: no kind of count has a bar in its name. What is of an upstream begins with the mark, so that
 * versions that know of no such sums take it for nothing of theirs.
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

/** Debit and credit of a failed try that nobody pays for, or of what is above the hold of an answer that broke off. */
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
