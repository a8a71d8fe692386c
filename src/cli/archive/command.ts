/**
 * `tollgate ledger archive`: moves the oldest lines of ledgers to files; one opening line per ledger replaces them. The
 * order makes this safe: a file is on the disk before the store removes anything, and the store removes only lines
 * whose digest we send. A run after an interruption continues with the file that was written.
 */
import { chained, type LineChain, newChain } from "../../store/ledger/line-chain.ts";
import { ARCHIVE_LINES_MAX, readOpening } from "../../store/ledger/opening.ts";
import { digestOf } from "../../store/ledger/plain-line.ts";
import type { LedgerLine } from "../../store/records.ts";
import { startOfDay } from "../../store/sums/day-sums.ts";
import { type AdminClient, retryingClient, segment } from "../admin-client.ts";
import type { CommandResult } from "../admin-commands.ts";
import { type Ask, type Command, pathOf } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { type Column, table } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { listArchive, readArchive, writeArchive } from "./files.ts";
import { allAccounts, readLines } from "./lines.ts";

interface ArchiveOptions {
  readonly before: string;
  readonly to: string;
  readonly account?: string;
}

/** Most lines in one file. */
const FILE_LINES_MAX = 20_000;

const COLUMNS: readonly Column[] = [
  { title: "ACCOUNT", member: "account" },
  { title: "LINES", member: "lines", right: true },
  { title: "FILES", member: "files", right: true },
  { title: "LEDGER BEGINS AFTER LINE", member: "through", right: true },
];

interface Archived {
  readonly account: string;
  readonly lines: number;
  readonly files: number;
  readonly through: number;
}

/** @throws CliFailure */
async function archiveLedgers(
  impatient: AdminClient,
  { before, to, account }: ArchiveOptions,
  terminal: Terminal,
): Promise<CommandResult> {
  const admin = retryingClient(impatient, terminal);
  const beforeMs = startOfDay(before);
  if (beforeMs === undefined) throw new CliFailure(2, "--before must be a UTC day, YYYY-MM-DD.");
  const items: Archived[] = [];
  for await (const name of account === undefined ? allAccounts(admin) : [account]) {
    const one = await archiveOne(admin, name, { before, beforeMs, to }, terminal);
    if (one.lines > 0 || account !== undefined) items.push(one);
  }
  terminal.clear();
  const lines = items.reduce((sum, one) => sum + one.lines, 0);
  const where = lines === 0 ? "; no file or folder was created" : `, in ${to}`;
  const words = `Lines archived: ${lines}, from before ${before}${where}.\n`;
  const rows = items.map((one) => ({ ...one }));
  return { json: { before, to, lines, items: rows }, text: lines === 0 ? words : table(COLUMNS, rows) + words };
}

interface Where {
  readonly before: string;
  readonly beforeMs: number;
  readonly to: string;
}

async function archiveOne(admin: AdminClient, account: string, where: Where, terminal: Terminal): Promise<Archived> {
  const { id, lines: head, stayFromMs } = await readLines(admin, account, 0, 1);
  if (where.beforeMs > stayFromMs) {
    const since = new Date(stayFromMs).toISOString();
    throw new CliFailure(1, `Lines younger than 96 hours are never archived; use a day that began before ${since}.`);
  }
  const opening = head[0]?.kind === "opening" ? head[0] : undefined;
  let through = opening?.seq ?? 0;
  let chain = (opening && readOpening(opening.memo)?.chain) ?? newChain(id, through + 1);
  let files = 0;
  let count = 0;
  for (;;) {
    const lines = await linesOnDisk(admin, account, id, { through, chain }, where);
    if (lines.length === 0) return { account, lines: count, files, through };
    for (const step of steps(lines)) {
      through = await archiveStep(admin, account, through, step, where.before);
      chain = chained(chain, step);
      count += step.length;
      terminal.progress(`${account}: archived up to line ${through}`);
    }
    files += 1;
  }
}

/** The next lines to remove from the store: those of a file that an earlier run left, or else those of a new file. */
async function linesOnDisk(
  admin: AdminClient,
  account: string,
  id: string,
  { through, chain }: { readonly through: number; readonly chain: LineChain },
  { beforeMs, to }: Where,
): Promise<LedgerLine[]> {
  const files = await listArchive(to, true);
  const written = files.find((file) => file.account === id && file.first <= through + 1 && through < file.last);
  if (written) {
    const lines = (await readArchive(written)).filter(({ seq }) => seq > through);
    const young = lines.findIndex(({ atMs }) => atMs >= beforeMs);
    return young === -1 ? lines : lines.slice(0, endOfRequest(lines, young));
  }
  const lines = await oldLines(admin, account, through, beforeMs);
  if (lines.length > 0) await writeArchive(to, id, lines, chain);
  return lines;
}

/** Lines from before an instant, up to the first one that is not. A request's lines stay together. */
async function oldLines(admin: AdminClient, account: string, after: number, beforeMs: number): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  while (lines.length < FILE_LINES_MAX) {
    const { lines: page, more } = await readLines(admin, account, lines.at(-1)?.seq ?? after);
    const young = page.findIndex(({ atMs }) => atMs >= beforeMs);
    lines.push(...(young === -1 ? page : page.slice(0, young)));
    if (young !== -1 || !more) break;
  }
  const [next] = lines.length === 0 ? [] : (await readLines(admin, account, lines.at(-1)?.seq ?? after, 1)).lines;
  return lines.slice(0, endOfRequest([...lines, ...(next ? [next] : [])], lines.length));
}

function* steps(lines: readonly LedgerLine[]): Generator<LedgerLine[]> {
  for (let from = 0; from < lines.length; ) {
    const to = endOfRequest(lines, Math.min(from + ARCHIVE_LINES_MAX, lines.length));
    yield lines.slice(from, to);
    from = to;
  }
}

/** The last index up to `at` at which no request is split. */
function endOfRequest(lines: readonly LedgerLine[], at: number): number {
  let end = at;
  while (end > 0 && end < lines.length && lines[end]?.reference === lines[end - 1]?.reference) end -= 1;
  return end;
}

/** Replaces lines that are on disk by an opening line at the gateway. @returns the last archived line. */
async function archiveStep(
  admin: AdminClient,
  account: string,
  after: number,
  lines: readonly LedgerLine[],
  before: string,
): Promise<number> {
  const through = lines.at(-1)?.seq ?? after;
  const ask = { before, after, through, sha256: digestOf(lines) };
  await admin.call("POST", `/accounts/${segment(account)}/ledger/archive`, ask);
  return through;
}

const ARCHIVE_GOES_ON = "Interrupted. No line is lost; run the same command to continue.";

/** Defines `tollgate ledger archive`. */
export function addArchiveCommand(ledger: Command, ask: Ask): void {
  ledger
    .command("archive")
    .description("move old lines to files; an opening line replaces them; safe to repeat")
    .requiredOption(
      "--before <day>",
      "archive lines from before this UTC day, which must have begun at least 96 hours ago",
    )
    .requiredOption("--to <dir>", "folder of the archive; keep all its files together", pathOf)
    .option("--account <name>", "one account; default: all")
    .action((options: ArchiveOptions) => ask((c, terminal) => archiveLedgers(c, options, terminal), ARCHIVE_GOES_ON));
}
