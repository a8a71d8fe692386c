/** The ledger on Redis: lines in a stream, and what was archived before them as one opening line beside it. */
import type { AccountTag } from "../../values/key.ts";
import { LEDGER_PAGE_MAX, pageSize } from "../checks.ts";
import { ARCHIVE_AGE_MS, ARCHIVE_LINES_MAX, type ArchiveOutcome } from "../opening.ts";
import { fromPlain, textOf } from "../plain-line.ts";
import type { LedgerLine } from "../records.ts";
import { accountKey, ledgerKey, openingKey } from "./keys.ts";
import { toLedgerLine, unreadableLine } from "./records.ts";
import type { Runner } from "./runner.ts";
import type { Scripts } from "./scripts.ts";

/** Lines that one step reads at most, and the bytes after which it ends: the store does nothing else meanwhile. */
const STEP_LINES = 200;
const STEP_BYTES = 262_144;

type Reply = readonly [
  opening: readonly [seq: string, line: string] | null,
  entries: readonly [id: string, fields: string[]][],
  more: string,
];

/**
 * Steps of a bounded size. The opening line comes with the lines behind it in one step, so that no reader falls between
 * it and the lines that it replaces.
 */
export async function readLedger(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  afterSeq: number,
  limit: number,
): Promise<LedgerLine[]> {
  const size = pageSize(limit, LEDGER_PAGE_MAX);
  const lines: LedgerLine[] = [];
  for (let after = afterSeq; lines.length < size; after = lines.at(-1)?.seq ?? after) {
    const count = Math.min(STEP_LINES, size - lines.length);
    const keys = [ledgerKey(tag), openingKey(tag)];
    const reply = (await runner.script(scripts["ledger-read"], keys, [
      `${after}`,
      `${count}`,
      `${STEP_BYTES}`,
    ])) as Reply;
    const [opening, entries, more] = reply;
    if (opening !== null) lines.push(toOpening(opening));
    lines.push(...entries.map(toLedgerLine));
    if (more === "0" || (opening === null && entries.length === 0)) break;
  }
  return lines;
}

function toOpening([seq, text]: readonly [string, string]): LedgerLine {
  try {
    const line = fromPlain(JSON.parse(text));
    if (line && line.seq === Number(seq)) return line;
  } catch {}
  return unreadableLine(Number(seq));
}

export async function archiveLedger(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  { after, opening }: { readonly after: number; readonly opening: LedgerLine },
): Promise<ArchiveOutcome> {
  const reply = await runner.script(
    scripts["ledger-archive"],
    [accountKey(tag), ledgerKey(tag), openingKey(tag)],
    [`${after}`, `${opening.seq}`, `${opening.balance}`, textOf(opening), `${ARCHIVE_AGE_MS}`, `${ARCHIVE_LINES_MAX}`],
  );
  return reply as ArchiveOutcome;
}
