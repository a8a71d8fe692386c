/**
 * What keeps a charge and a payment from being counted twice: the settled mark of a request, and the record of a
 * payment. They are looked up by the names in the ledger lines, so that no more is read than necessary
 * (docs/decisions/marks-are-looked-up-by-ledger-lines.md).
 */
import { formatUsd } from "../../values/money.ts";
import { SETTLED_MARK_MS } from "../settlement.ts";
import type { AccountCheck, NameCheck } from "./snapshot.ts";

/** A mark that expires within the hour may be gone before its line is read. */
const MARK_MARGIN_MS = 3_600_000;

/**
 * Whether a line of this instant must still have its mark: not near the end of the mark's life, and not if the line's
 * clock was ahead.
 */
export function mustHaveMark(atMs: number, storeTimeMs: number): boolean {
  return atMs <= storeTimeMs && atMs > storeTimeMs - SETTLED_MARK_MS + MARK_MARGIN_MS;
}

/** `settled_mark`: a request in the ledger has its mark, with its amount, as long as it could be replayed. */
export const settledMark: NameCheck = ({ figures, requests }) =>
  requests
    .filter(({ atMs }) => mustHaveMark(atMs, figures.storeTimeMs))
    .flatMap(({ requestId, line, owed }) => {
      const recorded = figures.marks.get(requestId);
      if (recorded === undefined) {
        const what = `The request ${requestId} has no settled mark: a replay would charge it again.`;
        return [{ check: "settled_mark", line, about: requestId, what }];
      }
      if (owed === undefined || owed === recorded) return [];
      const words = `${formatUsd(recorded)} USD; its lines sum up to ${formatUsd(owed)}`;
      const what = `The settled mark of the request ${requestId} says ${words}.`;
      return [{ check: "settled_mark", line, about: requestId, what }];
    });

/** `payment`: a top-up or adjustment has its record, with its amount. */
export const payment: NameCheck = ({ figures, payments }) =>
  payments.flatMap(({ id, line, amount }) => {
    const recorded = figures.payments.get(id);
    if (recorded === amount) return [];
    const missing = `The payment ${id} has no record: if it is repeated, it is counted again.`;
    const words = `${formatUsd(recorded ?? 0n)} USD instead of ${formatUsd(amount)}`;
    const what = recorded === undefined ? missing : `The record of the payment ${id} says ${words}.`;
    return [{ check: "payment", line, about: id, what }];
  });

/** `payment_count`: no payment has a record and no line, and none has two lines. */
export const paymentCount: AccountCheck = ({ figures, lines }) => {
  const [recorded, inLines] = [figures.paymentCount, lines.payments];
  if (recorded === undefined || inLines === undefined || recorded === inLines) return [];
  const what = `${recorded} payments are recorded; the lines contain ${inLines}.`;
  return [{ check: "payment_count", line: undefined, what }];
};
