/** What a change that stopped half-way has left (docs/redis-scripts.md). */
import type { AccountCheck } from "./snapshot.ts";

/**
 * `unfinished`: a change was begun and not ended. The account holds what is still to be run, and its next change runs
 * it.
 */
const unfinished: AccountCheck = ({ figures }) => {
  const what = "A change of it has stopped half-way; the next one on this account ends it, once Redis lets it.";
  return figures.unfinished ? [{ check: "unfinished", line: undefined, what }] : [];
};

export const halfDoneChecks: readonly AccountCheck[] = [unfinished];
