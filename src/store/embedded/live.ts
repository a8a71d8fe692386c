/**
 * What an account has in flight: holds, buckets, counts. In memory only: after a restart nothing is held, and the
 * journal supplies what crashed requests owe.
 */

import { TransientMap } from "../../values/collections/transient.ts";
import { nanoUsd } from "../../values/money.ts";
import type { Admitted } from "../admission.ts";
import type { Bucket } from "../buckets.ts";
import { budgetField, readCounted } from "../limits/budgets.ts";
import { SWEEP_MAX } from "../settlement.ts";

/**
 * What is held for a request. Its texts (`recordOf`) are made only at settlement: parsing amounts from them took 2 us
 * per request.
 */
export interface LiveHold {
  readonly expiresAtMs: number;
  /** The limit scope that counts it. */
  readonly scope: string;
  /** The answer that the request got, with the amount that is held now. */
  readonly answer: Admitted;
}

export interface Live {
  readonly holds: TransientMap<string, LiveHold>;
  readonly buckets: Map<string, Bucket>;
  readonly inFlightByScope: Map<string, number>;
  readonly heldByEntitlement: Map<string, bigint>;
  /** Requests in flight of keys with a concurrency limit, by key id. */
  readonly inFlightByKey: Map<string, number>;
  /** Amounts held of budgets, by `heldName`. */
  readonly heldByBudget: Map<string, bigint>;
  /** Amount held of the balance. */
  held: bigint;
  /** No hold expires before this instant, milliseconds since the epoch. */
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

export function addHold(live: Live, requestId: string, held: LiveHold): void {
  const { answer, expiresAtMs } = held;
  live.holds.set(requestId, held);
  if (expiresAtMs < live.nextExpiryMs) live.nextExpiryMs = expiresAtMs;
  moveHeld(live, answer, answer.hold);
  countHeld(live, held, 1);
}

/** Raises an existing hold. */
export function growHold(live: Live, requestId: string, held: LiveHold, more: bigint): void {
  const { answer } = held;
  live.holds.set(requestId, { ...held, answer: { ...answer, hold: nanoUsd(answer.hold + more) } });
  moveHeld(live, answer, more);
}

/** Releases a hold, if it still exists. */
export function releaseHold(live: Live, requestId: string): void {
  const held = live.holds.take(requestId);
  if (held === undefined) return;
  moveHeld(live, held.answer, -held.answer.hold);
  countHeld(live, held, -1);
}

function countHeld({ inFlightByScope, inFlightByKey }: Live, { scope, answer }: LiveHold, by: 1 | -1): void {
  countIn(inFlightByScope, scope, by);
  if (readCounted(answer.counted).inFlight) countIn(inFlightByKey, answer.keyId, by);
}

function countIn(counts: Map<string, number>, name: string, by: 1 | -1): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count <= 0) counts.delete(name);
  else counts.set(name, count);
}

/** Releases expired holds, earliest first, at most SWEEP_MAX of them. @returns whether there may have been any. */
export function sweepHolds(live: Live, nowMs: number): boolean {
  if (nowMs < live.nextExpiryMs) return false;
  const expired: [expiresAtMs: number, requestId: string][] = [];
  live.nextExpiryMs = Number.POSITIVE_INFINITY;
  for (const [requestId, { expiresAtMs }] of live.holds.entries()) {
    if (expiresAtMs <= nowMs) expired.push([expiresAtMs, requestId]);
    else live.nextExpiryMs = Math.min(live.nextExpiryMs, expiresAtMs);
  }
  if (expired.length > SWEEP_MAX) live.nextExpiryMs = nowMs;
  if (expired.length > SWEEP_MAX) expired.sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1));
  for (const [, requestId] of expired.slice(0, SWEEP_MAX)) releaseHold(live, requestId);
  return true;
}

function moveHeld(live: Live, { counted, keyId, entitlement }: Admitted, amount: bigint): void {
  for (const budget of readCounted(counted).budgets) {
    addTo(live.heldByBudget, heldName(budgetField(budget, keyId), budget.period), amount);
  }
  if (entitlement === undefined) live.held += amount;
  else addTo(live.heldByEntitlement, entitlement, amount);
}

function addTo(amounts: Map<string, bigint>, name: string, amount: bigint): void {
  const sum = (amounts.get(name) ?? 0n) + amount;
  // Less than nothing: it was dropped with its period (`openPeriod`).
  if (sum <= 0n) amounts.delete(name);
  else amounts.set(name, sum);
}

/** The name under which the held amount of a budget in a period is stored. */
export const heldName = (field: string, period: number): string => `${field} ${period}`;
