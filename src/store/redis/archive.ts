/** The ledger on Redis: lines in a stream, and next to it one opening line for the archived lines. */
import type { AccountTag } from "../../values/key.ts";
import { LEDGER_PAGE_MAX, pageSize } from "../checks.ts";
import { ARCHIVE_AGE_MS, ARCHIVE_LINES_MAX, type ArchiveOutcome } from "../ledger/opening.ts";
import { fromPlain, textOf } from "../ledger/plain-line.ts";
import type { LedgerLine } from "../records.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, ledgerKey, openingKey } from "./keys.ts";
import { toLedgerLine, unreadableLine } from "./records.ts";
import type { Scripts } from "./scripts.ts";

/**
 * The most lines that one step reads: the store does nothing else meanwhile. It is a plain command, because a script
 * takes five times as long to turn each line into a table and back (6 ms instead of 1.2 ms for 200 lines, with Redis
 * 7.0).
 */
const STEP_LINES = 100;
/** How often the ledger's beginning may be archived while a page is read. */
const ATTEMPTS_MAX = 5;

/** Reads in bounded steps, so that other accounts are served in between. */
export async function readLedger(
  runner: Runner,
  tag: AccountTag,
  afterSeq: number,
  limit: number,
): Promise<LedgerLine[]> {
  const size = pageSize(limit, LEDGER_PAGE_MAX);
  const lines: LedgerLine[] = [];
  while (lines.length < size) {
    const count = Math.min(STEP_LINES, size - lines.length);
    const more = await readStep(runner, tag, lines.at(-1)?.seq ?? afterSeq, count);
    lines.push(...more);
    if (more.length < count) break;
  }
  return lines;
}

/**
 * The opening line and the lines after it are two separate reads. If a line between them is missing, and the ledger no
 * longer begins where it did, it was archived in between, and both are read again.
 */
async function readStep(runner: Runner, tag: AccountTag, after: number, count: number): Promise<LedgerLine[]> {
  for (let attempt = 1; ; attempt++) {
    const [opened, entries] = await Promise.all([
      openedAt(runner, tag),
      runner.step((redis) => redis.entriesAfter(ledgerKey(tag), `${after}-0`, count)),
    ]);
    const opening = await openingAfter(runner, tag, opened, after);
    const lines = entries.map(toLedgerLine).filter(({ seq }) => seq > (opening?.seq ?? after));
    const isNext = lines[0]?.seq === (opening?.seq ?? after) + 1;
    if (isNext || attempt === ATTEMPTS_MAX || Object.is(await openedAt(runner, tag), opened)) {
      return opening ? [opening, ...lines].slice(0, count) : lines;
    }
  }
}

/** Number of the opening line; undefined without one, NaN if the text is not a number. */
async function openedAt(runner: Runner, tag: AccountTag): Promise<number | undefined> {
  const seq = await runner.step((redis) => redis.hget(openingKey(tag), "seq"));
  return seq === null ? undefined : Number(seq);
}

/** The opening line, if it is after the requested number. One without a number counts as the first line. */
async function openingAfter(
  runner: Runner,
  tag: AccountTag,
  opened: number | undefined,
  after: number,
): Promise<LedgerLine | undefined> {
  if (opened === undefined || opened <= after) return undefined;
  if (Number.isNaN(opened)) return after === 0 ? unreadableLine(0) : undefined;
  return toOpening([`${opened}`, (await runner.step((redis) => redis.hget(openingKey(tag), "line"))) ?? ""]);
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
