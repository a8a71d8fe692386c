/**
 * `tollgate ledger verify`: compares accounts with their ledgers, however long they are, and with the files of the
 * archive.
 */

import type { JsonObject } from "../values/json-object.ts";
import { type AdminClient, retryingClient } from "./admin-client.ts";
import { type CommandResult, itemsOf, query } from "./admin-commands.ts";
import { type ArchiveVerdict, verifyArchive } from "./archive/verify.ts";
import { type Ask, type Command, listingFormat, pathOf } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { type Column, cell, table } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";

interface VerifyOptions extends ListingOptions {
  readonly account?: string;
  /** The folder of the archive. */
  readonly archive?: string;
}

/** Findings about an account's marks that are printed individually. */
const MARKS_KEPT = 20;
/** How often the gateway may lose its progress. */
const RESTARTS_MAX = 3;

const ACCOUNT_COLUMNS: readonly Column[] = [
  { title: "ACCOUNT", member: "account" },
  { title: "RESULT", member: "outcome" },
  { title: "LINES", member: "lines", right: true },
  { title: "BALANCE USD", member: "balance_usd", right: true },
  { title: "SUM OF LINES USD", member: "lines_usd", right: true },
  { title: "FINDINGS", member: "finding_count", right: true },
];

const TOTAL_COLUMNS: readonly Column[] = [
  { title: "LEDGER ACCOUNT", member: "name" },
  { title: "CREDITS LESS DEBITS USD", member: "usd", right: true },
];

/**
 * Verifies one account, or all accounts over all pages. An imbalance is a failure that names account, line and check.
 */
export async function verifyLedger(
  impatient: AdminClient,
  { account, archive, format = "table" }: VerifyOptions,
  terminal: Terminal,
): Promise<CommandResult> {
  const admin = retryingClient(impatient, terminal);
  const verified = await verifyAccounts(admin, account, terminal);
  const marks = await verifyMarks(admin, account, terminal);
  const archived = archive === undefined ? undefined : await verifyArchive(admin, archive, account, terminal);
  terminal.clear();
  const items = withFindings(withFindings(verified, marks), archived?.findings ?? new Map());
  const unbalanced = items.filter(({ outcome }) => outcome !== "balanced");
  const files = archived && { archived_lines: archived.lines, archive_notes: archived.notes };
  const json = { accounts: items.length, unbalanced: unbalanced.length, ...files, items };
  const shown = account === undefined ? unbalanced : items;
  const totals = account === undefined ? "" : totalsOf(items[0]);
  const through = archived ? ` Lines verified in the archive: ${archived.lines}.` : "";
  const notes = [...items.flatMap(skippedOf), ...(archived?.notes ?? [])].map((note) => `${note}\n`).join("");
  const sum = `Accounts verified: ${items.length}; out of balance: ${unbalanced.length}.${through}\n`;
  const words = (shown.length === 0 ? "" : table(ACCOUNT_COLUMNS, shown) + totals) + notes + sum;
  const listed = { columns: ACCOUNT_COLUMNS, rows: items, json, none: "" };
  const text = format === "table" ? words : listing({ format }, listed);
  return unbalanced.length === 0 ? { json, text } : { json, text, failure: unbalanced.flatMap(complaints).join("\n") };
}

async function verifyAccounts(
  admin: AdminClient,
  account: string | undefined,
  terminal: Terminal,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  let cursor: string | undefined;
  let restarts = 0;
  do {
    const { body } = await admin.call("GET", `/ledger/verification${query({ account, cursor })}`);
    const found = itemsOf(body);
    items.push(...found);
    restarts = found.length > 0 ? 0 : restarts + (body.restarted === true ? 1 : 0);
    if (restarts > RESTARTS_MAX) throw forgetful(body);
    terminal.progress(progressWords(items.length, body.progress as JsonObject | null));
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined);
  return items;
}

/** By account: the findings that are kept, and the total number. */
type FindingsByAccount = ArchiveVerdict["findings"];

/** Verifies settled marks: reports those without a ledger line. */
async function verifyMarks(
  admin: AdminClient,
  account: string | undefined,
  terminal: Terminal,
): Promise<FindingsByAccount> {
  const findings = new Map<string, { kept: JsonObject[]; count: number }>();
  let cursor: string | undefined;
  let restarts = 0;
  let steps = 0;
  do {
    const { body } = await admin.call("GET", `/ledger/marks${query({ account, cursor })}`);
    for (const { account: of, ...finding } of itemsOf(body)) {
      const found = findings.get(String(of)) ?? { kept: [], count: 0 };
      if (found.kept.length < MARKS_KEPT) found.kept.push(finding);
      findings.set(String(of), { ...found, count: found.count + 1 });
    }
    restarts += body.restarted === true ? 1 : 0;
    if (restarts > RESTARTS_MAX) throw forgotten("the settled marks");
    steps += 1;
    terminal.progress(`Settled marks: step ${steps}`);
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined);
  return findings;
}

function forgetful({ progress }: JsonObject): CliFailure {
  const { account } = (progress ?? {}) as JsonObject;
  return forgotten(`the account ${cell(account)}`);
}

function forgotten(subject: string): CliFailure {
  const what = `The gateway lost its progress with ${subject} ${RESTARTS_MAX + 1} times.`;
  const remedy = "Use one gateway instead of several in turn: set TOLLGATE_ADMIN_URL to the address of one.";
  return new CliFailure(1, `${what}\n${remedy}`);
}

function progressWords(count: number, progress: JsonObject | null | undefined): string {
  const done = `Accounts verified: ${count}`;
  if (!progress) return done;
  const of = typeof progress.lines_total === "number" ? ` of ${progress.lines_total}` : "";
  return `${done}; ${cell(progress.account)}: line ${cell(progress.lines)}${of}`;
}

/** Adds the findings about marks and files to those about the account. */
function withFindings(items: readonly JsonObject[], findings: FindingsByAccount): readonly JsonObject[] {
  // An account that could not be read may be named by id in one list and by name in the other.
  const names = new Set(items.flatMap(({ account, id }) => [account, id]));
  // For an account that was created meanwhile, only marks and files have been verified.
  const made = [...findings.keys()].filter((account) => !names.has(account)).map((account) => ({ account }));
  return [...items, ...made].map((item: JsonObject) => {
    const more = [item.account, item.id].flatMap((called) => findings.get(String(called)) ?? []);
    if (more.length === 0) return item;
    const found = Array.isArray(item.findings) ? (item.findings as readonly JsonObject[]) : [];
    const finding_count = more.reduce((sum, { count }) => sum + count, Number(item.finding_count ?? 0));
    const kept = more.flatMap((one) => one.kept);
    return { ...item, outcome: "unbalanced", findings: [...found, ...kept], finding_count };
  });
}

/** The trial balance: the sums over all ledger accounts must be zero together. */
function totalsOf(item: JsonObject | undefined): string {
  const totals = Object.entries((item?.totals_usd ?? {}) as JsonObject).map(([name, usd]) => ({ name, usd }));
  return totals.length === 0 ? "" : `\n${table(TOTAL_COLUMNS, totals)}\n`;
}

function skippedOf(item: JsonObject): string[] {
  const skipped = Array.isArray(item.skipped) ? (item.skipped as readonly unknown[]) : [];
  return skipped.map((what) => `Account ${cell(item.account)}: ${cell(what)}`);
}

function complaints(item: JsonObject): string[] {
  const findings = Array.isArray(item.findings) ? (item.findings as readonly JsonObject[]) : [];
  const lines = findings.map(({ check, line, what }) => {
    const place = line === null ? "" : `, line ${cell(line)}`;
    return `Account ${cell(item.account)}${place}: ${cell(check)}: ${cell(what)}`;
  });
  const more = Number(item.finding_count) - lines.length;
  return more > 0 ? [...lines, `Account ${cell(item.account)}: and ${more} more.`] : lines;
}

const NOTHING_CHANGED = "Interrupted; nothing was changed.";

/** Defines `tollgate ledger verify`. */
export function addVerifyCommand(ledger: Command, ask: Ask): void {
  ledger
    .command("verify")
    .description("compare balances, sums and charges with the ledger lines; exit status 1 if something does not match")
    .option("--account <name>", "verify only this account and show its trial balance; default: all accounts")
    .option("--archive <dir>", "also verify the files of the archive, from the first line", pathOf)
    .addOption(listingFormat())
    .action((options: VerifyOptions) => ask((c, terminal) => verifyLedger(c, options, terminal), NOTHING_CHANGED));
}
