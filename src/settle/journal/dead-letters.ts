/**
 * Charges that the store does not take. They are kept in a file next to the journal, one JSON object per line, for a
 * person to examine. The journal drops them once they are in the file.
 */
import { accountId } from "../../store/names.ts";
import type { SettleAnswer, SettleAsk } from "../../store/settlement.ts";
import { printReference } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import type { Disk } from "./disk.ts";
import { encode } from "./payload.ts";

/**
 * `defect`: the store's own checks rejected the settlement, and a retry would not change that. `refused`: the account's
 * data in the store is broken, so that whether the store has the charge can no longer be seen.
 */
type DeadReason = "mismatch" | "half_written" | "stale" | "unknown_account" | "refused" | "defect";

export interface DeadLetter {
  readonly reason: DeadReason;
  readonly ask: SettleAsk;
  /** What the store has instead, or what it answered. */
  readonly detail: string | undefined;
}

/**
 * The store's answer, or the defect for which it rejected the settlement, or its refusal because of this account's
 * data.
 */
export type Answer = SettleAnswer | { readonly defect: string } | { readonly refusal: string };

export interface DeadLetters {
  /** Resolves when the request has a letter on the disk (this one or an earlier one), or if the file is full. */
  add(letter: DeadLetter): Promise<void>;
  /** Number of letters, including those of earlier processes. */
  count(): number;
}

const FILE = "dead-letters.jsonl";
/** More than this cannot come from single bad charges. Further letters are only in the log, which `onLetter` writes. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Whose charge it is, as log and commands name it: the request's printed reference and the account's id. */
export function whoseCharge({ requestId, tag }: Pick<SettleAsk, "requestId" | "tag">): object {
  return { request: printReference(requestId), account_id: accountId(tag) };
}

/** Finds the request id of a letter. Quotes within a text are escaped and do not match. */
const REQUEST_ID = /"requestId":"([^"\\]+)"/;

/**
 * Opens the file and counts its letters.
 * @param onLetter called with each new letter, and with whether the file has room for it.
 * @throws the disk's errors.
 */
export async function openDeadLetters(
  disk: Disk,
  clock: Clock,
  onLetter: (letter: DeadLetter, hasRoom: boolean) => void,
): Promise<DeadLetters> {
  const exists = (await disk.list()).includes(FILE);
  const text = exists ? (await disk.read(FILE, 0, FILE_BYTES_MAX)).toString() : "";
  let size = Buffer.byteLength(text);
  // A full disk or a crash can leave an incomplete line. It does not count, and the next letter must start on a new
  // line.
  let isCut = text !== "" && !text.endsWith("\n");
  const lines = text.split("\n").filter(isLetter);
  let count = lines.length;
  // Verification sees a charge twice, and again after a restart.
  const written = new Map<string | undefined, Promise<void>>();
  for (const line of lines) written.set(REQUEST_ID.exec(line)?.[1], Promise.resolve());

  async function write(letter: DeadLetter): Promise<void> {
    const at = new Date(clock.wallMs()).toISOString();
    const line = Buffer.from(`${isCut ? "\n" : ""}${encode({ at, ...whoseCharge(letter.ask), ...letter })}\n`);
    const hasRoom = size + line.length <= FILE_BYTES_MAX;
    count++;
    onLetter(letter, hasRoom);
    if (!hasRoom) return;
    size += line.length;
    isCut = false;
    await disk.append(FILE, line).catch((error: unknown) => {
      written.delete(letter.ask.requestId);
      count--;
      size -= line.length;
      isCut = true;
      throw error;
    });
  }

  return {
    add(letter) {
      const { requestId } = letter.ask;
      const writing = written.get(requestId) ?? write(letter);
      written.set(requestId, writing);
      return writing;
    },
    count: () => count,
  };
}

function isLetter(line: string): boolean {
  try {
    return typeof JSON.parse(line) === "object";
  } catch {
    return false;
  }
}

/**
 * The dead letter for a charge that the store did not take; undefined if it took the charge. The mismatch of an orphan
 * needs no letter: the store has the request's real charge, and only the ACK or the FINAL was lost with the process.
 */
export function letterFor(ask: SettleAsk, orphan: boolean, answer: Answer): DeadLetter | undefined {
  if ("defect" in answer) return { reason: "defect", ask, detail: answer.defect };
  if ("refusal" in answer) return { reason: "refused", ask, detail: answer.refusal };
  // Only a hold would be released: no money is lost.
  if (isNothing(ask) && answer.outcome !== "mismatch") return undefined;
  switch (answer.outcome) {
    case "settled":
    case "duplicate":
      return undefined;
    case "mismatch":
      return orphan ? undefined : { reason: "mismatch", ask, detail: `recorded ${answer.recorded}` };
    case "half_written":
      return { reason: "half_written", ask, detail: `recorded ${answer.recorded}` };
    default:
      return { reason: answer.outcome, ask, detail: undefined };
  }
}

/** Whether a settlement only releases a hold: no attempt of the request costs anything. */
export function isNothing({ voided, absorbed, leftUnpaid, attempts, costs }: SettleAsk): boolean {
  return voided && absorbed === 0n && !leftUnpaid && !attempts?.length && !costs?.length;
}
