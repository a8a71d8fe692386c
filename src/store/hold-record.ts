/**
 * What a store remembers of an admitted request: a list of texts that the scripts can read without numbers. It is
 * enough to repeat the answer to the same request id, and to release the hold without the caller.
 */
import type { AccountTag } from "../values/key.ts";
import { nanoUsd } from "../values/money.ts";
import type { Admitted, BucketState } from "./admission.ts";
import { accountId } from "./names.ts";

/**
 * The texts, in this order:
 * - amount, expiry, limit scope, entitlement or "", key id, group, unmetered "1" or "0", store time
 * - limit, remaining and reset of the request bucket, then of the token bucket; each "" without such a limit
 * - "1" if the account gets worst-case holds
 * - what the payer had free besides the hold; "" when nothing is held
 * - what the request is counted in besides its group's limits
 * Records of earlier versions lack the last three.
 */
export type HoldRecord = readonly string[];

const field = (record: HoldRecord, index: number): string => record[index] ?? "";

export const holdAmount = (record: HoldRecord): bigint => BigInt(field(record, 0));
export const holdExpiresAtMs = (record: HoldRecord): number => Number(field(record, 1));
export const holdScope = (record: HoldRecord): string => field(record, 2);
export const holdEntitlement = (record: HoldRecord): string | undefined => field(record, 3) || undefined;

/**
 * What is remembered of a hold: its expiry, the scope that counts it, and the answer with the amount that is held now.
 */
export function recordOf(answer: Admitted, expiresAtMs: number, scope: string): HoldRecord {
  return [
    `${answer.hold}`,
    `${expiresAtMs}`,
    scope,
    answer.entitlement ?? "",
    answer.keyId,
    answer.group,
    answer.unmetered ? "1" : "0",
    `${answer.storeTimeMs}`,
    ...bucketTexts(answer.limits.requests),
    ...bucketTexts(answer.limits.tokens),
    answer.worstCase ? "1" : "",
    `${answer.free ?? ""}`,
    answer.counted,
  ];
}

const NO_BUCKET = ["", "", ""] as const;

/** The three texts of a bucket's state. */
function bucketTexts(state: BucketState | undefined): readonly [string, string, string] {
  return state === undefined ? NO_BUCKET : [`${state.limit}`, `${state.remaining}`, `${state.resetMs}`];
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
    ...(field(record, 14) === "1" ? { worstCase: true as const } : {}),
    ...(field(record, 15) === "" ? {} : { free: nanoUsd(BigInt(field(record, 15))) }),
    entitlement: holdEntitlement(record),
    unmetered: field(record, 6) === "1",
    storeTimeMs: Number(field(record, 7)),
    limits: { requests: bucketOfTexts(record.slice(8, 11)), tokens: bucketOfTexts(record.slice(11, 14)) },
    counted: field(record, 16),
  };
}
