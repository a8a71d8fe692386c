/**
 * Charges that the store will not take: kept in a file beside the journal, one JSON object a line, for a person to look
 * at. The journal drops them once they are in it.
 */
import { accountId } from "../../store/names.ts";
import type { SettleAnswer, SettleAsk } from "../../store/settlement.ts";
import { printReference } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import type { Disk } from "./disk.ts";
import { encode } from "./payload.ts";

/**
 * `defect`: the store's own checks refused the ask, which trying again would not change. `refused`: what the store has of the
 * account is broken; that it had taken the charge could not be seen any more.
 */
type DeadReason = "mismatch" | "half_written" | "stale" | "unknown_account" | "refused" | "defect";

export interface DeadLetter {
  readonly reason: DeadReason;
  readonly ask: SettleAsk;
  /** What the store has in place of it, or what it said. */
  readonly detail: string | undefined;
}

/** What the store said, the defect on which it refused to look at the ask, or its refusal of this one account. */
export type Answer = SettleAnswer | { readonly defect: string } | { readonly refusal: string };

export interface DeadLetters {
  /** Resolves when the request has a letter on the disk, this one or an earlier, or where the file is full. */
  add(letter: DeadLetter): Promise<void>;
  /** Letters in the file, those of earlier processes too. */
  count(): number;
}

const FILE = "dead-letters.jsonl";
/** More than this is no accident of single charges; the rest is in the log only, which `onLetter` writes. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Whose charge it is, in the words of the log and of commands: the request as clients and ledgers have it, and the account's id. */
export function whoseCharge({ requestId, tag }: Pick<SettleAsk, "requestId" | "tag">): object {
  return { request: printReference(requestId), account_id: accountId(tag) };
}

/** The request of a letter; within a text the quotes would be escaped. */
const REQUEST_ID = /"requestId":"([^"\\]+)"/;

/**
 * Counts the letters that are there.
 * @param onLetter called with each new one, and with whether the file has room for it.
 * @throws as the disk does.
 */
export async function openDeadLetters(
  disk: Disk,
  clock: Clock,
  onLetter: (letter: DeadLetter, hasRoom: boolean) => void,
): Promise<DeadLetters> {
  const exists = (await disk.list()).includes(FILE);
  const text = exists ? (await disk.read(FILE, 0, FILE_BYTES_MAX)).toString() : "";
  let size = Buffer.byteLength(text);
  // A disk that was full, or a crash, leaves half a line: that is no letter, and the next one must not be glued to it.
  let isCut = text !== "" && !text.endsWith("\n");
  const lines = text.split("\n").filter(isLetter);
  let count = lines.length;
  // Verification meets a charge twice, and again after a restart.
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
 * The dead letter for a charge that the store did not take; undefined when it did. The mismatch of an orphan needs
 * none: the store has the request's real charge, and only the ACK, or the FINAL, was lost with the process.
 */
export function letterFor(ask: SettleAsk, orphan: boolean, answer: Answer): DeadLetter | undefined {
  if ("defect" in answer) return { reason: "defect", ask, detail: answer.defect };
  if ("refusal" in answer) return { reason: "refused", ask, detail: answer.refusal };
  // A hold to give back that no account has: no money is lost.
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

/** Whether a settlement only gives a hold back: no try of the request is on anybody's bill. */
export function isNothing({ voided, absorbed, leftUnpaid, attempts, costs }: SettleAsk): boolean {
  return voided && absorbed === 0n && !leftUnpaid && !attempts?.length && !costs?.length;
}
