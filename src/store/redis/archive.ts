/** The ledger on Redis: lines in a stream, and what was archived before them as one opening line beside it. */
import type { AccountTag } from "../../values/key.ts";
import { LEDGER_PAGE_MAX, pageSize } from "../checks.ts";
import { ARCHIVE_AGE_MS, ARCHIVE_LINES_MAX, type ArchiveOutcome } from "../opening.ts";
import { fromPlain, textOf } from "../plain-line.ts";
import type { LedgerLine } from "../records.ts";
import { accountKey, ledgerKey, openingKey } from "./keys.ts";
import { toLedgerLine } from "./records.ts";
import type { Runner } from "./runner.ts";
import type { Scripts } from "./scripts.ts";

/** One step, so that no reader falls between an opening line and the lines that it replaces. */
export async function readLedger(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  afterSeq: number,
  limit: number,
): Promise<LedgerLine[]> {
  const size = pageSize(limit, LEDGER_PAGE_MAX);
  const reply = await runner.script(
    scripts["ledger-read"],
    [ledgerKey(tag), openingKey(tag)],
    [`${afterSeq}`, `${size}`],
  );
  const [opening, entries] = reply as [[seq: string, line: string] | null, [id: string, fields: string[]][]];
  const lines = entries.map(toLedgerLine);
  if (opening === null) return lines;
  const line = fromPlain(JSON.parse(opening[1]));
  if (!line) throw new TypeError("an opening line in Redis is none");
  return [line, ...lines];
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
