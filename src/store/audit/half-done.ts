/** What a change that stopped half-way has left (docs/redis-scripts.md). */
import type { AccountState } from "../records.ts";

/** Something that is not as it must be. */
export interface HalfDoneFinding {
  /** The check's name: what programs match on. */
  readonly check: string;
  /** The request that it is about; undefined for the account itself. */
  readonly about?: string;
  /** One sentence, ends with a full stop. */
  readonly what: string;
}

type HalfDoneCheck = (state: Pick<AccountState, "halfDone" | "settled" | "holds">) => HalfDoneFinding[];

/** `unfinished`: a change was begun and not ended; what is still to be run stands in the account, and its next one runs it. */
const unfinished: HalfDoneCheck = ({ halfDone }) => {
  const what = "A change of it has stopped half-way; the next one on this account ends it, once Redis lets it.";
  return halfDone.todo ? [{ check: "unfinished", what }] : [];
};

/** `mark_without_line`: a request that counts as settled, and of which the ledger has nothing. */
const markWithoutLine: HalfDoneCheck = ({ halfDone }) =>
  halfDone.marksWithoutLine.map((requestId) => {
    const what = `The request ${requestId} counts as settled, and has no line.`;
    return { check: "mark_without_line", about: requestId, what };
  });

/** `hold_settled`: a request that is settled holds nothing any more. */
const holdSettled: HalfDoneCheck = ({ settled, holds }) =>
  holds
    .filter(({ requestId }) => settled.includes(requestId))
    .map(({ requestId }) => {
      const what = `The request ${requestId} is settled, and its hold is still there.`;
      return { check: "hold_settled", about: requestId, what };
    });

export const HALF_DONE_CHECKS: readonly HalfDoneCheck[] = [unfinished, markWithoutLine, holdSettled];
