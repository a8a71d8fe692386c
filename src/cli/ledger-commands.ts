/** `tollgate ledger`: every movement of money, shown, and exported whole. */

import type { JsonObject } from "../values/json-object.ts";
import { type AdminClient, patientClient, segment } from "./admin-client.ts";
import { type CommandResult, itemsOf, ledgerTable, query, showLedger, withMore } from "./admin-commands.ts";
import { CliFailure } from "./failure.ts";
import { instantOf } from "./instants.ts";
import { csv, csvRows } from "./output/csv.ts";
import { type Column, table } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";

export interface LedgerOptions {
  readonly account: string;
  readonly after?: string;
  /** How many of the newest lines, newest first. */
  readonly last?: string;
  /** As typed: an instant, or how long ago. */
  readonly since?: string;
  readonly before?: string;
  readonly limit?: string;
  readonly format?: string;
  /** Tries at upstreams in place of lines. */
  readonly attempts?: true;
}

/** Lines of one question while the whole ledger is fetched. */
const EXPORT_PAGE = "250";

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

/**
 * A page as a table; with another format the whole ledger after `after`, written as it comes, however long it is.
 * @throws CliFailure 2 for a format that is none
 */
export async function showOrExport(
  admin: AdminClient,
  options: LedgerOptions,
  terminal: Terminal,
): Promise<CommandResult> {
  const { account, limit, format = "table" } = options;
  if (options.last !== undefined || options.since !== undefined) return showNewest(admin, options);
  if (format === "table") return options.attempts ? showAttempts(admin, options) : showLedger(admin, account, options);
  if (format !== "csv" && format !== "json") throw new CliFailure(2, "--format must be table, csv or json.");
  if (limit !== undefined) throw new CliFailure(2, `--limit is for tables; --format ${format} gives the whole ledger.`);
  const pages = wholeLedger(patientClient(admin, terminal), options, terminal);
  // An account that is not there is refused before anything is written.
  const first = await pages.next();
  const pieces = (asJson: boolean) =>
    format === "csv" && !asJson ? csvPieces(options, first, pages) : jsonPieces(options, first, pages);
  return { json: {}, text: "", pieces };
}

/** @throws CliFailure 2 for options of the other order, or an instant that is none */
async function showNewest(admin: AdminClient, options: LedgerOptions): Promise<CommandResult> {
  const { account, last, since, before, format = "table", attempts } = options;
  const [other] =
    Object.entries({ "--after": options.after, "--limit": options.limit }).find(([, typed]) => typed) ?? [];
  if (other !== undefined) throw new CliFailure(2, `${other} is for oldest first: leave out --last and --since.`);
  if (attempts || format === "csv")
    throw new CliFailure(2, "--last and --since are for the table of lines, and for JSON.");
  const from = since === undefined ? undefined : instantOf("--since", since, -1);
  const search = query({ order: "newest", since: from, before, limit: last });
  const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger${search}`);
  if (format === "json") return { json: body, text: `${JSON.stringify(body)}\n` };
  const rest = [...(since === undefined ? [] : ["--since", since]), ...(last === undefined ? [] : ["--last", last])];
  const again = `tollgate ledger show --account ${account} ${rest.join(" ")}`;
  return withMore(body, ledgerTable(body), (next) => `Older lines: ${again} --before ${next}\n`);
}

type Pages = AsyncGenerator<readonly JsonObject[], void, void>;
type First = IteratorResult<readonly JsonObject[], void>;

/** Rows, a page at a time. A failure in the middle says how to go on. */
async function* wholeLedger(
  admin: AdminClient,
  { account, after, attempts }: LedgerOptions,
  terminal: Terminal,
): Pages {
  let lines = 0;
  for (let next = after ?? "0"; next !== ""; ) {
    const search = query({ after: next, limit: EXPORT_PAGE });
    const { body } = await admin
      .call("GET", `/accounts/${segment(account)}/ledger${search}`)
      .catch((error: unknown) => {
        throw lines === 0 ? error : incomplete(error, next);
      });
    const items = itemsOf(body);
    lines += items.length;
    yield attempts ? attemptRows(items) : items;
    next = typeof body.next === "number" ? String(body.next) : "";
    terminal.progress(`Lines: ${lines}`);
  }
  terminal.clear();
}

function incomplete(error: unknown, after: string): unknown {
  if (!(error instanceof CliFailure)) return error;
  const words = `The output is incomplete: it ends with line ${after}. What follows it: --after ${after}`;
  return new CliFailure(error.exitStatus, `${error.message}\n${words}`, error.code);
}

async function* csvPieces({ attempts }: LedgerOptions, first: First, pages: Pages): AsyncGenerator<string> {
  const members = attempts ? ATTEMPT_COLUMNS.map(({ member }) => member) : CSV_MEMBERS;
  yield csv(members, first.value ?? []);
  for await (const rows of pages) yield csvRows(members, rows);
}

async function* jsonPieces({ account }: LedgerOptions, first: First, pages: Pages): AsyncGenerator<string> {
  let begun = false;
  const piece = (rows: readonly JsonObject[]): string => {
    const text = rows.map((row) => JSON.stringify(row)).join(",");
    const comma = begun && text !== "" ? "," : "";
    begun ||= text !== "";
    return comma + text;
  };
  yield `{"account":${JSON.stringify(account)},"items":[${piece(first.value ?? [])}`;
  for await (const rows of pages) yield piece(rows);
  yield "]}\n";
}

async function showAttempts(admin: AdminClient, { account, after, limit }: LedgerOptions): Promise<CommandResult> {
  const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger${query({ after, limit })}`);
  const items = attemptRows(itemsOf(body));
  const text = items.length === 0 ? "No attempts.\n" : table(ATTEMPT_COLUMNS, items);
  const more = (next: string) => `More: tollgate ledger show --account ${account} --attempts --after ${next}\n`;
  return withMore({ ...body, items }, text, more);
}

/** One row for each try; one of a request's lines holds its tries, in their order. */
function attemptRows(lines: readonly JsonObject[]): JsonObject[] {
  return lines.flatMap(({ seq, at, reference, attempts }) => {
    const tries = Array.isArray(attempts) ? (attempts as readonly JsonObject[]) : [];
    return tries.map((one, index) => ({ seq, at, reference, attempt: index + 1, ...one }));
  });
}
