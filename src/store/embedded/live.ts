/**
 * What an account has in flight: holds, buckets, counts. In memory only; after a restart nothing is held, and what
 * crashed requests owe comes from the journal.
 */

import { TransientMap } from "../../values/collections/transient.ts";
import type { Bucket } from "../buckets.ts";
import {
  type HoldRecord,
  holdAmount,
  holdCounted,
  holdEntitlement,
  holdExpiresAtMs,
  holdKey,
  holdScope,
  withAmount,
} from "../hold-record.ts";
import { budgetField, readCounted } from "../limits/budgets.ts";
import { SWEEP_MAX } from "../settlement.ts";

export interface Live {
  readonly holds: TransientMap<string, HoldRecord>;
  readonly buckets: Map<string, Bucket>;
  readonly inFlightByScope: Map<string, number>;
  readonly heldByEntitlement: Map<string, bigint>;
  /** Requests at once of keys that have a limit of them, by key id. */
  readonly inFlightByKey: Map<string, number>;
  /** Held of budgets, by `heldName`. */
  readonly heldByBudget: Map<string, bigint>;
  /** Held of the balance. */
  held: bigint;
  /** No hold ends before this instant, milliseconds since the epoch. */
  nextExpiryMs: number;
}

export function emptyLive(): Live {
  return {
    holds: new TransientMap(),
    buckets: new Map(),
    inFlightByScope: new Map(),
    heldByEntitlement: new Map(),
    inFlightByKey: new Map(),
    heldByBudget: new Map(),
    held: 0n,
    nextExpiryMs: Number.POSITIVE_INFINITY,
  };
}

export function addHold(live: Live, requestId: string, record: HoldRecord): void {
  live.holds.set(requestId, record);
  live.nextExpiryMs = Math.min(live.nextExpiryMs, holdExpiresAtMs(record));
  moveHeld(live, record, holdAmount(record));
  countIn(live.inFlightByScope, holdScope(record), 1);
  if (readCounted(holdCounted(record)).inFlight) countIn(live.inFlightByKey, holdKey(record), 1);
}

/** Adds to a hold that is there. */
export function growHold(live: Live, requestId: string, record: HoldRecord, more: bigint): void {
  live.holds.set(requestId, withAmount(record, holdAmount(record) + more));
  moveHeld(live, record, more);
}

/** Lets a hold go, if it is still there. @returns its record. */
export function releaseHold(live: Live, requestId: string): HoldRecord | undefined {
  const record = live.holds.get(requestId);
  if (record === undefined) return undefined;
  live.holds.delete(requestId);
  moveHeld(live, record, -holdAmount(record));
  countIn(live.inFlightByScope, holdScope(record), -1);
  if (readCounted(holdCounted(record)).inFlight) countIn(live.inFlightByKey, holdKey(record), -1);
  return record;
}

function countIn(counts: Map<string, number>, name: string, by: 1 | -1): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count <= 0) counts.delete(name);
  else counts.set(name, count);
}

/** Lets expired holds go, earliest first, at most SWEEP_MAX of them. */
export function sweepHolds(live: Live, nowMs: number): void {
  if (nowMs < live.nextExpiryMs) return;
  const expired: [expiresAtMs: number, requestId: string][] = [];
  live.nextExpiryMs = Number.POSITIVE_INFINITY;
  for (const [requestId, record] of live.holds.entries()) {
    const expiresAtMs = holdExpiresAtMs(record);
    if (expiresAtMs <= nowMs) expired.push([expiresAtMs, requestId]);
    else live.nextExpiryMs = Math.min(live.nextExpiryMs, expiresAtMs);
  }
  if (expired.length > SWEEP_MAX) live.nextExpiryMs = nowMs;
  if (expired.length > SWEEP_MAX) expired.sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1));
  for (const [, requestId] of expired.slice(0, SWEEP_MAX)) releaseHold(live, requestId);
}

function moveHeld(live: Live, record: HoldRecord, amount: bigint): void {
  for (const budget of readCounted(holdCounted(record)).budgets) {
    addTo(live.heldByBudget, heldName(budgetField(budget, holdKey(record)), budget.period), amount);
  }
  const entitlement = holdEntitlement(record);
  if (entitlement === undefined) live.held += amount;
  else addTo(live.heldByEntitlement, entitlement, amount);
}

function addTo(amounts: Map<string, bigint>, name: string, amount: bigint): void {
  const sum = (amounts.get(name) ?? 0n) + amount;
  if (sum === 0n) amounts.delete(name);
  else amounts.set(name, sum);
}

/** Under which name it is known what is held of a budget in a period. */
export const heldName = (field: string, period: number): string => `${field} ${period}`;
