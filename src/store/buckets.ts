/**
 * Rate buckets and allowances, all in integers: debt in tokens x 60,000, which drains by the per-minute limit each millisecond. The
 * Lua in `redis/lua/buckets.lua` is the same arithmetic, line by line; the differential test compares them.
 */
import type { BucketState } from "./admission.ts";

/** Debt of one token. */
const UNIT = 60_000;
/** The most debt that is remembered, so that every sum stays below 2^53. */
const DEBT_MAX = 4_000_000_000_000_000;

export interface Bucket {
  readonly debt: number;
  /**
   * The instant at which `debt` was true. Never goes back: a clock jump mints nothing (docs/failure-model.md invariant
   * 5).
   */
  readonly atMs: number;
}

/** How much of a limit scope (`names.ts`) is used, read without changing it. */
export interface LimitUsage {
  /** As stored; undefined: nothing was taken yet, or all has drained. */
  readonly requests: Bucket | undefined;
  readonly tokens: Bucket | undefined;
  /** Charges of the account above their holds that went beyond funds or budgets. */
  readonly overrun: Bucket | undefined;
  /** Requests in flight of the scope, and of the whole account. */
  readonly inFlight: number;
  readonly inFlightOfAccount: number;
  readonly storeTimeMs: number;
}

/** The bucket as of now. */
export function drain(bucket: Bucket | undefined, limit: number, nowMs: number): Bucket {
  if (bucket === undefined) return { debt: 0, atMs: nowMs };
  const atMs = Math.max(nowMs, bucket.atMs);
  return { debt: Math.max(0, bucket.debt - limit * (atMs - bucket.atMs)), atMs };
}

/** Milliseconds until `count` may be taken; 0 when now. More than the limit passes once the bucket is full. */
export function waitMs(drained: Bucket, limit: number, count: number, nowMs: number): number {
  const over = drained.debt + Math.min(count, limit) * UNIT - limit * UNIT;
  return over <= 0 ? 0 : Math.ceil(over / limit) + (drained.atMs - nowMs);
}

/** Takes (or with a negative count gives back) tokens; the debt may pass the limit, never 0. */
export function take(drained: Bucket, count: number): Bucket {
  return { debt: Math.min(DEBT_MAX, Math.max(0, drained.debt + count * UNIT)), atMs: drained.atMs };
}

/** In which an allowance comes back whole. */
const ALLOWANCE_MS = 86_400_000;

/**
 * Takes `cost` from an allowance, both in nano-dollars, which comes back evenly over a day.
 * @returns the bucket (debt in nano-dollars) as it is to be stored; undefined when the cost does not fit into what is left,
 * as into an allowance of 0 nothing does.
 */
export function takeAllowed(
  bucket: Bucket | undefined,
  allowance: number,
  cost: number,
  nowMs: number,
): Bucket | undefined {
  const { debt, atMs } = bucket ?? { debt: 0, atMs: nowMs };
  const laterMs = Math.max(nowMs, atMs);
  const left = Math.max(0, debt - Math.floor((allowance * (laterMs - atMs)) / ALLOWANCE_MS));
  if (allowance === 0 || cost > allowance - left) return undefined;
  return { debt: left + cost, atMs: laterMs };
}

/** So many charges above their holds that were not paid are one too many. No more are counted: an account is free a week after the last of them. */
const OVERRUNS_DEAR = 3;
/** One charge above its hold is forgotten in each such time, one after the other. */
const OVERRUN_MS = 7 * 86_400_000;

/** Whether what of a charge is beyond funds or budgets is more than a trifle, an eighth of its hold. */
export function isOverrun(beyond: number, hold: number): boolean {
  return beyond > Math.floor(hold / 8);
}

/** Counts a charge above its hold (the debt is milliseconds, which drain by themselves). */
export function addOverrun(bucket: Bucket | undefined, nowMs: number): Bucket {
  const { debt, atMs } = drain(bucket, 1, nowMs);
  return { debt: Math.min(OVERRUNS_DEAR * OVERRUN_MS, debt + OVERRUN_MS), atMs };
}

/** Whether so many are not forgotten yet that the account is held at the dearest. */
export function isHeldDear(bucket: Bucket | undefined, nowMs: number): boolean {
  return drain(bucket, 1, nowMs).debt > (OVERRUNS_DEAR - 1) * OVERRUN_MS;
}

export function bucketState(drained: Bucket, limit: number, nowMs: number): BucketState {
  return {
    limit,
    remaining: Math.max(0, Math.floor((limit * UNIT - drained.debt) / UNIT)),
    resetMs: drained.debt === 0 ? 0 : Math.ceil(drained.debt / limit) + (drained.atMs - nowMs),
  };
}
