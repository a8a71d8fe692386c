/**
 * What a store remembers of an admitted request, as a list of texts that the scripts can read without numbers: enough
 * to give the same answer to the same request id again, and to let the hold go without the caller's word.
 */
import type { AccountTag } from "../values/key.ts";
import { nanoUsd } from "../values/money.ts";
import type { Admitted, BucketState } from "./admission.ts";
import { accountId } from "./names.ts";

/**
 * amount, expires at, limit scope, entitlement or "", key id, group, unmetered "1" or "0", store time, then limit,
 * remaining and reset of the request bucket and of the token bucket (each "" without such a limit), "1" where the account
 * is held at the dearest, what the payer had free beside the hold ("" where nothing is held), and what the request counts in
 * beside its group's limits. Records of earlier versions end before the last three.
 */
export type HoldRecord = readonly string[];

const field = (record: HoldRecord, index: number): string => record[index] ?? "";

export const holdAmount = (record: HoldRecord): bigint => BigInt(field(record, 0));
export const holdExpiresAtMs = (record: HoldRecord): number => Number(field(record, 1));
export const holdScope = (record: HoldRecord): string => field(record, 2);
export const holdEntitlement = (record: HoldRecord): string | undefined => field(record, 3) || undefined;

export const holdKey = (record: HoldRecord): string => field(record, 4);
export const holdCounted = (record: HoldRecord): string => field(record, 16);
export const holdUnmetered = (record: HoldRecord): boolean => field(record, 6) === "1";
/** The same hold with another amount. */
export const withAmount = (record: HoldRecord, amount: bigint): HoldRecord => [`${amount}`, ...record.slice(1)];

/** Three texts of a bucket's state. */
export function bucketTexts(state: BucketState | undefined): readonly [string, string, string] {
  return state === undefined ? ["", "", ""] : [`${state.limit}`, `${state.remaining}`, `${state.resetMs}`];
}

export function bucketOfTexts(texts: readonly string[]): BucketState | undefined {
  const [limit = "", remaining = "", resetMs = ""] = texts;
  if (limit === "") return undefined;
  return { limit: Number(limit), remaining: Number(remaining), resetMs: Number(resetMs) };
}

/** The answer that the request got when it was admitted. */
export function admittedOf(tag: AccountTag, record: HoldRecord): Admitted {
  return {
    outcome: "admitted",
    accountId: accountId(tag),
    keyId: field(record, 4),
    group: field(record, 5),
    hold: nanoUsd(holdAmount(record)),
    ...(field(record, 14) === "1" ? { dear: true as const } : {}),
    ...(field(record, 15) === "" ? {} : { free: nanoUsd(BigInt(field(record, 15))) }),
    entitlement: holdEntitlement(record),
    unmetered: holdUnmetered(record),
    storeTimeMs: Number(field(record, 7)),
    limits: { requests: bucketOfTexts(record.slice(8, 11)), tokens: bucketOfTexts(record.slice(11, 14)) },
    counted: holdCounted(record),
  };
}
