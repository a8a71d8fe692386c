/** What an unfinished change has left (docs/redis-scripts.md). */
import type { AccountCheck } from "./snapshot.ts";

/**
 * `unfinished`: a change was begun and not finished. The account holds the steps that remain, and its next change runs
 * them.
 */
const unfinished: AccountCheck = ({ figures }) => {
  const what = "A change stopped half-way. The next change of this account finishes it, when Redis allows it.";
  return figures.unfinished ? [{ check: "unfinished", line: undefined, what }] : [];
};

export const halfDoneChecks: readonly AccountCheck[] = [unfinished];
