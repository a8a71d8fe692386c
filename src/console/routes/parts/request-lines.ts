/**
 * Finds the ledger lines of one request, starting at the instant when its id was issued instead of at the first line.
 */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../../store/contract.ts";
import type { LedgerLine } from "../../../store/records.ts";
import type { AccountTag } from "../../../values/key.ts";
import { issuedAtMs, type RequestId, readRequestId } from "../../../values/request-id.ts";
import type { Clock } from "../../../values/time.ts";
import { AdminRefusal } from "../../refusal.ts";
import { closed, Type, wholeNumber } from "../../vocabulary.ts";

export const PrintedRequestId = Type.String({
  pattern: "^req_[0-9A-Za-z]{24}$",
  description: "the id of a request: req_ and 24 letters or digits",
  "x-remedy": "Copy the complete id from the answer's x-request-id header or from an error message.",
});

export const RequestQuery = Type.Object(
  { after: Type.Optional(wholeNumber(15, "the `next` of an earlier answer")) },
  closed,
);

/** An answer ends after this time with its results so far. */
export const ANSWER_MS = 1_000;
/** Lines that are read at a time: a few milliseconds of the process. */
export const STEP_LINES = 100;
/** How long after its request a line may be written, including the wait for an orphaned request. */
const SETTLES_WITHIN_MS = 3 * 86_400_000;
const CLOCKS_DIFFER_MS = 10 * 60_000;

export interface LedgerParts {
  readonly store: Pick<Store, "readLedger" | "getAccount">;
  readonly clock: Clock;
}

interface RequestLines {
  readonly id: RequestId;
  /** All lines of the request; undefined while the search is not finished. */
  readonly lines: readonly LedgerLine[] | undefined;
  /** The `after` of the next answer, if this one ended before the search did. */
  readonly next: number | null;
}

/**
 * Searches the lines of an account for a request, for about a second.
 * @param printed the request's id as its client has it
 * @param after the `next` of an earlier answer
 * @throws AdminRefusal 404 if no line belongs to it
 */
export async function linesOfRequest(
  { store, clock }: LedgerParts,
  tag: AccountTag,
  printed: string,
  after: string | undefined,
): Promise<RequestLines> {
  const id = readRequestId(printed);
  if (id === undefined) throw noSuchRequest(printed);
  const issuedMs = issuedAtMs(id);
  const endMs = clock.monotonicMs() + ANSWER_MS;
  const first = async () => (await seqFrom(store, tag, await lineCount(store, tag), issuedMs - CLOCKS_DIFFER_MS)) - 1;
  let last = after === undefined ? await first() : Number(after);
  for (;;) {
    const lines = await store.readLedger(tag, last, STEP_LINES);
    const found = lines.find(({ reference }) => reference === id);
    if (found) {
      // All lines of a request are written in one step.
      const written = await store.readLedger(tag, found.seq - 1, STEP_LINES);
      return { id, lines: written.filter(({ reference }) => reference === id), next: null };
    }
    const newest = lines.at(-1);
    if (newest === undefined || lines.length < STEP_LINES || newest.atMs > issuedMs + SETTLES_WITHIN_MS)
      throw noSuchRequest(printed);
    last = newest.seq;
    if (clock.monotonicMs() >= endMs) return { id, lines: undefined, next: last };
    await setImmediate();
  }
}

/** The number of the newest line. */
export async function lineCount(store: LedgerParts["store"], tag: AccountTag): Promise<number> {
  return (await store.getAccount(tag))?.lines ?? 0;
}

/** The number of the first line at or after an instant, or one above the last line; found by binary search. */
export async function seqFrom(
  store: LedgerParts["store"],
  tag: AccountTag,
  lines: number,
  atMs: number,
): Promise<number> {
  let [low, high] = [1, lines + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [line] = await store.readLedger(tag, middle - 1, 1);
    if (line === undefined || line.atMs >= atMs) high = middle;
    else low = Math.max(middle, line.seq) + 1;
  }
  return low;
}

function noSuchRequest(id: string): AdminRefusal {
  return new AdminRefusal(
    404,
    "unknown_request",
    `No ledger line of this account is about the request \`${id}\`.`,
    "Copy the complete id. A request that is still running, was refused or cost nothing has no line; old lines may be archived.",
  );
}
