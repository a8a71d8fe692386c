/** `tollgate ledger`: every movement of money, shown, exported whole, and verified. */
import { type AdminClient, type Fields, segment } from "./admin-client.ts";
import { itemsOf, type Outcome, query, showLedger, withMore } from "./admin-commands.ts";
import { verifyArchive } from "./archive-verify.ts";
import { csv } from "./csv.ts";
import { CliFailure } from "./failure.ts";
import { type Column, cell, table } from "./table.ts";

export interface LedgerOptions {
  readonly account: string;
  readonly after?: string;
  readonly limit?: string;
  readonly format?: string;
  /** Tries at upstreams in place of lines. */
  readonly attempts?: true;
}

/** Lines of one question while the whole ledger is fetched: the most that the gateway gives. */
const EXPORT_PAGE = "1000";

const CSV_MEMBERS = [
  "seq",
  "at",
  "kind",
  "debit",
  "credit",
  "usd",
  "balance_usd",
  "reference",
  "group",
  "model",
  "key",
  "note",
  "usage",
  "attempts",
];

/**
 * A page as a table; with another format the whole ledger behind `after`.
 * @throws CliFailure 2 for a format that is none
 */
export async function showOrExport(admin: AdminClient, options: LedgerOptions): Promise<Outcome> {
  const { account, after, limit, format = "table" } = options;
  if (format === "table") return options.attempts ? showAttempts(admin, options) : showLedger(admin, account, options);
  if (format !== "csv" && format !== "json") throw new CliFailure(2, "--format must be table, csv or json.");
  if (limit !== undefined) throw new CliFailure(2, `--limit is for tables; --format ${format} gives the whole ledger.`);
  const items: Fields[] = [];
  for (let next = after ?? "0"; next !== ""; ) {
    const search = query({ after: next, limit: EXPORT_PAGE });
    const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger${search}`);
    items.push(...itemsOf(body));
    next = typeof body.next === "number" ? String(body.next) : "";
  }
  const rows = options.attempts ? attemptRows(items) : items;
  const json = { account, items: rows };
  const members = options.attempts ? ATTEMPT_COLUMNS.map(({ member }) => member) : CSV_MEMBERS;
  return { json, text: format === "csv" ? csv(members, rows) : `${JSON.stringify(json)}\n` };
}

const ATTEMPT_COLUMNS: readonly Column[] = [
  { title: "SEQ", member: "seq", right: true },
  { title: "AT", member: "at" },
  { title: "REQUEST", member: "reference" },
  { title: "TRY", member: "attempt", right: true },
  { title: "UPSTREAM", member: "upstream" },
  { title: "MODEL", member: "model" },
  { title: "OUTCOME", member: "outcome" },
  { title: "STATUS", member: "status", right: true },
  { title: "INPUT", member: "input_tokens", right: true },
  { title: "OUTPUT", member: "output_tokens", right: true },
  { title: "COUNTED", member: "counted" },
  { title: "COST USD", member: "cost_usd", right: true },
  { title: "PAID BY", member: "paid_by" },
  { title: "WHY", member: "why" },
];

async function showAttempts(admin: AdminClient, { account, after, limit }: LedgerOptions): Promise<Outcome> {
  const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger${query({ after, limit })}`);
  const items = attemptRows(itemsOf(body));
  const text = items.length === 0 ? "No attempts.\n" : table(ATTEMPT_COLUMNS, items);
  const more = (next: string) => `More: tollgate ledger show --account ${account} --attempts --after ${next}\n`;
  return withMore({ ...body, items }, text, more);
}

/** One row for each try; those of a request stand on one of its lines, in their order. */
function attemptRows(lines: readonly Fields[]): Fields[] {
  return lines.flatMap(({ seq, at, reference, attempts }) => {
    const tries = Array.isArray(attempts) ? (attempts as readonly Fields[]) : [];
    return tries.map((one, index) => ({ seq, at, reference, attempt: index + 1, ...one }));
  });
}

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

/** Verifies one account, or all of them over all pages; what does not balance is a failure that names account and line. */
export async function verifyLedger(
  admin: AdminClient,
  { account, archive }: { readonly account?: string; readonly archive?: string },
): Promise<Outcome> {
  const items: Fields[] = [];
  let cursor: string | undefined;
  do {
    const { body } = await admin.call("GET", `/ledger/verification${query({ account, cursor })}`);
    items.push(...itemsOf(body));
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined);
  const unbalanced = items.filter(({ outcome }) => outcome === "unbalanced");
  const archived = archive === undefined ? undefined : await verifyArchive(admin, archive, account);
  const files = archived && { archived_lines: archived.lines, archive: archived.unbalanced };
  const json = { accounts: items.length, unbalanced: unbalanced.length, items, ...files };
  const shown = account === undefined && unbalanced.length > 0 ? unbalanced : items;
  const totals = account === undefined ? "" : totalsOf(items[0]);
  const through = archived ? ` Lines verified in the archive: ${archived.lines}.` : "";
  const sum = `Accounts verified: ${items.length}; out of balance: ${unbalanced.length}.${through}\n`;
  const text = account === undefined && unbalanced.length === 0 ? sum : table(ACCOUNT_COLUMNS, shown) + totals + sum;
  const wrong = [...unbalanced, ...(archived?.unbalanced ?? [])];
  return wrong.length === 0 ? { json, text } : { json, text, failure: wrong.flatMap(complaints).join("\n") };
}

/** The trial balance: whatever one ledger account has lost, another has. */
function totalsOf(item: Fields | undefined): string {
  const totals = Object.entries((item?.totals_usd ?? {}) as Fields).map(([name, usd]) => ({ name, usd }));
  return totals.length === 0 ? "" : `\n${table(TOTAL_COLUMNS, totals)}\n`;
}

function complaints(item: Fields): string[] {
  const findings = Array.isArray(item.findings) ? (item.findings as readonly Fields[]) : [];
  const lines = findings.map(({ line, what }) => {
    const place = line === null ? "" : `, line ${cell(line)}`;
    return `Account ${cell(item.account)}${place}: ${cell(what)}`;
  });
  const more = Number(item.finding_count) - lines.length;
  return more > 0 ? [...lines, `Account ${cell(item.account)}: and ${more} more.`] : lines;
}
