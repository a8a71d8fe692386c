/**
 * Rate buckets and allowances, all in integers. Debt is tokens x 60,000; each millisecond it drains by the per-minute
 * limit. `redis/lua/buckets.lua` has the same arithmetic, line by line; the differential test compares the two.
 */
import type { BucketState } from "./admission.ts";

/** Debt of one token. */
const UNIT = 60_000;
/** The most debt that is stored, so that every sum stays below 2^53. */
const DEBT_MAX = 4_000_000_000_000_000;

export interface Bucket {
  readonly debt: number;
  /**
   * The instant at which `debt` was true. It does not go back with the clock, so a clock jump gives no capacity away
   * (docs/failure-model.md invariant 14), unless the clock was ahead by more than AHEAD_MAX_MS.
   */
  readonly atMs: number;
}

/**
 * How far ahead of the clock a bucket may be. One that is further ahead was used while the clock was wrong. It counts
 * as never used, because it would not drain until the clock is there again.
 */
const AHEAD_MAX_MS = 3_600_000;

function isUsable(bucket: Bucket | undefined, nowMs: number): bucket is Bucket {
  return bucket !== undefined && bucket.atMs - nowMs <= AHEAD_MAX_MS;
}

/** Usage of a limit scope (`names.ts`), read without changing it. */
export interface LimitUsage {
  /** As stored; undefined: nothing was taken yet, or all of it has drained. */
  readonly requests: Bucket | undefined;
  readonly tokens: Bucket | undefined;
  /** Charges of the account above their holds that exceeded funds or budgets. */
  readonly overrun: Bucket | undefined;
  /** Requests in flight in the scope, and in the whole account. */
  readonly inFlight: number;
  readonly inFlightOfAccount: number;
  readonly storeTimeMs: number;
}

/** The bucket as of `nowMs`. */
export function drain(bucket: Bucket | undefined, limit: number, nowMs: number): Bucket {
  if (!isUsable(bucket, nowMs)) return { debt: 0, atMs: nowMs };
  const atMs = Math.max(nowMs, bucket.atMs);
  return { debt: Math.max(0, bucket.debt - limit * (atMs - bucket.atMs)), atMs };
}

/** Milliseconds until `count` may be taken; 0: now. A count above the limit passes when the bucket is full. */
export function waitMs(drained: Bucket, limit: number, count: number, nowMs: number): number {
  const over = drained.debt + Math.min(count, limit) * UNIT - limit * UNIT;
  return over <= 0 ? 0 : Math.ceil(over / limit) + (drained.atMs - nowMs);
}

/** Takes tokens; a negative count gives them back. The debt may exceed the limit, but never falls below 0. */
export function take(drained: Bucket, count: number): Bucket {
  return { debt: Math.min(DEBT_MAX, Math.max(0, drained.debt + count * UNIT)), atMs: drained.atMs };
}

/** Time in which an allowance is restored in full. */
const ALLOWANCE_MS = 86_400_000;

/**
 * Takes `cost` from an allowance, both in nano-dollars. The allowance is restored evenly over a day.
 * @returns the bucket to store (debt in nano-dollars); undefined when the cost does not fit into what is left. Nothing
 * fits into an allowance of 0.
 */
export function takeAllowed(
  bucket: Bucket | undefined,
  allowance: number,
  cost: number,
  nowMs: number,
): Bucket | undefined {
  const { debt, atMs } = isUsable(bucket, nowMs) ? bucket : { debt: 0, atMs: nowMs };
  const laterMs = Math.max(nowMs, atMs);
  const left = Math.max(0, debt - Math.floor((allowance * (laterMs - atMs)) / ALLOWANCE_MS));
  if (allowance === 0 || cost > allowance - left) return undefined;
  return { debt: left + cost, atMs: laterMs };
}

/**
 * This many overruns (unpaid charges above their holds) are too many. No more are counted, so an account is clear a
 * week after its last one.
 */
const OVERRUNS_MAX = 3;
/** One overrun is forgotten after each such time, one after the other. */
const OVERRUN_MS = 7 * 86_400_000;

/** Whether the part of a charge beyond funds or budgets is significant: more than an eighth of its hold. */
export function isOverrun(beyond: number, hold: number): boolean {
  return beyond > Math.floor(hold / 8);
}

/** Counts an overrun. The debt is in milliseconds, which drain by themselves. */
export function addOverrun(bucket: Bucket | undefined, nowMs: number): Bucket {
  const { debt, atMs } = drain(bucket, 1, nowMs);
  return { debt: Math.min(OVERRUNS_MAX * OVERRUN_MS, debt + OVERRUN_MS), atMs };
}

/** Whether the account still has so many overruns that it gets worst-case holds. */
export function needsWorstCaseHold(bucket: Bucket | undefined, nowMs: number): boolean {
  return drain(bucket, 1, nowMs).debt > (OVERRUNS_MAX - 1) * OVERRUN_MS;
}

export function bucketState(drained: Bucket, limit: number, nowMs: number): BucketState {
  return {
    limit,
    remaining: Math.max(0, Math.floor((limit * UNIT - drained.debt) / UNIT)),
    resetMs: drained.debt === 0 ? 0 : Math.ceil(drained.debt / limit) + (drained.atMs - nowMs),
  };
}
