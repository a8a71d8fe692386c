/**
 * Settlements without a hold: they are late, or sent again. The mark of such a request may be gone although its lines
 * are there, because its gateway was down for days, or because a clock that was ahead for days has made it expire.
 * `redis/lua/settle.lua` does the same.
 */
import { LATE_LINES_MAX, type SettleAsk } from "../settlement.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database/database.ts";

/**
 * Lines that are not written yet need not be looked at: their mark is in the batch, too. Only if that mark has expired,
 * because the clock was moved by days within a batch, the batch is written first.
 * @returns the amount that the lines of the request charge; undefined if it has no line.
 */
export function lateCharge(
  { db }: Context,
  { tag, requestId, admittedAtMs }: SettleAsk,
  seq: number,
): bigint | undefined {
  if (db.batch.mark(tag, requestId)) db.writeOut();
  // Lines are written when a request ends, so they come after its admission, unless the clock has changed between.
  let [low, high] = [1, seq];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = db.getWritten("SELECT at FROM ledger WHERE tag = ? AND seq >= ? ORDER BY seq LIMIT 1", tag, middle);
    if (row && Number(row.at) < admittedAtMs) low = middle + 1;
    else high = middle;
  }
  const sql = "SELECT at, kind, debit, amount, ref FROM ledger WHERE tag = ? AND seq >= ? ORDER BY seq LIMIT ?";
  let charged: bigint | undefined;
  for (const row of db.allWritten(sql, tag, low, LATE_LINES_MAX)) {
    if (row.ref !== requestId || !isOfRequest(row)) continue;
    const isCharge = row.kind === "usage" || row.debit === "absorbed:over_hold";
    charged = (charged ?? 0n) + (isCharge ? (row.amount as bigint) : 0n);
  }
  return charged;
}

const isOfRequest = ({ kind }: Row): boolean => kind === "usage" || kind === "absorbed";
