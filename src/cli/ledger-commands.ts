/** `tollgate ledger`: shows and exports all movements of money. */

import type { JsonObject } from "../values/json-object.ts";
import { type AdminClient, retryingClient, segment } from "./admin-client.ts";
import {
  type CommandResult,
  itemsOf,
  LEDGER_COLUMNS,
  ledgerTable,
  pageOptions,
  query,
  showLedger,
  withCause,
  withMore,
} from "./admin-commands.ts";
import { addArchiveCommand } from "./archive/command.ts";
import { type Ask, type Command, EVERY, FOLLOW, type Follow, Option } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { type Follower, following, pauseOf } from "./follow/follow.ts";
import { instantOf } from "./instants.ts";
import { csv, csvRows } from "./output/csv.ts";
import { LISTING_FORMATS } from "./output/listing.ts";
import { optionWords } from "./output/printed-command.ts";
import { type Column, table } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { asTyped } from "./typed-names.ts";
import { addVerifyCommand } from "./verify-command.ts";

interface LedgerOptions {
  readonly account: string;
  readonly after?: string;
  /** Number of newest lines, newest first. */
  readonly last?: string;
  /** As typed: an instant, or a duration before now. */
  readonly since?: string;
  readonly before?: string;
  readonly limit?: string;
  /** The id of a request; only its lines are shown. */
  readonly request?: string;
  readonly format?: string;
  /** Show attempts at upstreams instead of lines. */
  readonly attempts?: true;
  readonly follow?: true;
  readonly every?: string;
}

/** The maximum of `--last`: one page of the API. */
const LAST_MAX = 1_000;
/** Lines per request while the whole ledger is exported. */
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
 * Shows a page as a table. With another format it streams the whole ledger after `after`.
 * @throws CliFailure 2 for an unknown format
 */
async function showOrExport(admin: AdminClient, options: LedgerOptions, follower: Follower): Promise<CommandResult> {
  const { terminal } = follower;
  const { account, limit, format = "table" } = options;
  checkLast(options.last);
  if (options.request !== undefined) return showRequest(admin, options.request, options);
  if (options.follow) return followLedger(admin, options, follower);
  if (options.last !== undefined || options.since !== undefined) return showNewest(admin, options);
  if (options.before !== undefined)
    throw new CliFailure(2, "--before is for newest first; use it with --last or --since.");
  if (format === "table") return options.attempts ? showAttempts(admin, options) : showLedger(admin, account, options);
  if (format !== "csv" && format !== "json") throw new CliFailure(2, "--format must be table, csv or json.");
  if (limit !== undefined)
    throw new CliFailure(2, `--limit is for tables; --format ${format} exports the whole ledger.`);
  const pages = wholeLedger(retryingClient(admin, terminal), options, terminal);
  // An unknown account is refused before anything is written.
  const first = await pages.next();
  const pieces = (asJson: boolean) =>
    format === "csv" && !asJson ? csvPieces(options, first, pages) : jsonPieces(options, first, pages);
  return { json: {}, text: "", pieces };
}

/** Checked here, because the API's message names its own member. @throws CliFailure 2 for an invalid count */
function checkLast(last: string | undefined): void {
  if (last === undefined || (/^[1-9][0-9]{0,3}$/.test(last) && Number(last) <= LAST_MAX)) return;
  throw new CliFailure(
    2,
    `--last must be a whole number from 1 to ${LAST_MAX}; --format csv exports the whole ledger.`,
  );
}

/** @throws CliFailure 2 for options of the other order, or an invalid instant */
async function showNewest(admin: AdminClient, options: LedgerOptions): Promise<CommandResult> {
  const { account, last, since, before, attempts } = options;
  const [other] =
    Object.entries({ "--after": options.after, "--limit": options.limit }).find(([, typed]) => typed) ?? [];
  if (other !== undefined)
    throw new CliFailure(2, `${other} is for oldest first; do not use it with --last or --since.`);
  const from = since === undefined ? undefined : instantOf("--since", since, -1);
  const search = query({ order: "newest", since: from, before, limit: last });
  const answer = await admin.call("GET", `/accounts/${segment(account)}/ledger${search}`);
  const body = attempts ? { ...answer.body, items: attemptRows(itemsOf(answer.body)) } : answer.body;
  const { format } = pageOptions(options);
  const again = `${admin.command} ledger show${optionWords({ account, since, last, format })}${attempts ? " --attempts" : ""}`;
  return withMore(body, pageText(options, body), (next) => `Older lines: ${again} --before ${next}\n`);
}

/** @throws CliFailure 2 for options that select other lines */
async function showRequest(admin: AdminClient, id: string, options: LedgerOptions): Promise<CommandResult> {
  const { account, attempts, last, since, before, after, limit, follow } = options;
  const others = { last, since, before, after, limit, follow };
  const [other] = Object.entries(others).find(([, typed]) => typed !== undefined) ?? [];
  if (other !== undefined)
    throw new CliFailure(2, `--request shows the lines of one request; do not use it with --${other}.`);
  const typed = asTyped(admin, { id: "--request" });
  for (let next: string | undefined; ; ) {
    const path = `/accounts/${segment(account)}/requests/${segment(id)}${query({ after: next })}`;
    const { body } = await typed.call("GET", path);
    const shown = attempts ? { ...body, items: attemptRows(itemsOf(body)) } : body;
    if (typeof body.next !== "number") return { json: shown, text: pageText(options, shown) };
    next = String(body.next);
  }
}

function pageText({ format, attempts }: LedgerOptions, body: JsonObject): string {
  if (format === "json") return `${JSON.stringify(body)}\n`;
  if (format === "csv") return csv(attempts ? ATTEMPT_COLUMNS.map(({ member }) => member) : CSV_MEMBERS, itemsOf(body));
  if (!attempts) return ledgerTable(body);
  return itemsOf(body).length === 0 ? "No attempts.\n" : table(ATTEMPT_COLUMNS, itemsOf(body));
}

/** Lines with which `--follow` begins. */
const FOLLOWED = "10";

/**
 * Shows the last lines, oldest first, and then new lines.
 * @throws CliFailure 2 for options for pages, or an invalid instant or duration
 */
async function followLedger(admin: AdminClient, options: LedgerOptions, follower: Follower): Promise<CommandResult> {
  const { account, last, since, after, format, attempts } = options;
  const pages = { "--before": options.before, "--limit": options.limit };
  const [other] = Object.entries(pages).find(([, typed]) => typed !== undefined) ?? [];
  if (other !== undefined) throw new CliFailure(2, `${other} is for pages; do not use it with --follow.`);
  if (after !== undefined && (last ?? since) !== undefined)
    throw new CliFailure(2, "--after sets the start; do not use it with --last or --since.");
  const everyMs = pauseOf(options.every);
  const from = since === undefined ? undefined : instantOf("--since", since, -1);
  let id: unknown;
  const ask = async (search: Readonly<Record<string, string | undefined>>) => {
    const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger${query(search)}`);
    // Gateways of earlier versions do not send it.
    const asked = body.account_id ?? id;
    id ??= asked;
    // The account was renamed, and another account has its name now.
    if (asked !== id) throw anotherAccount(account, String(id));
    return body;
  };
  let seq = after ?? "0";
  let begin: readonly JsonObject[] = [];
  if (after === undefined) {
    // The current end of the ledger, in case there is no line since `--since`.
    seq = String(itemsOf(await ask({ order: "newest", limit: "1" }))[0]?.seq ?? 0);
    const limit = last ?? (since === undefined ? FOLLOWED : undefined);
    begin = itemsOf(await ask({ order: "newest", since: from, limit })).toReversed();
    seq = String(begin.at(-1)?.seq ?? seq);
  }
  const rowsOf = (lines: readonly JsonObject[]) => (attempts ? attemptRows(lines) : lines);
  const more = async () => {
    const body = await ask({ after: seq, limit: EXPORT_PAGE });
    const lines = itemsOf(body);
    seq = String(lines.at(-1)?.seq ?? seq);
    return { rows: rowsOf(lines), isMore: typeof body.next === "number" };
  };
  const form = attempts
    ? { format, columns: ATTEMPT_COLUMNS }
    : { format, columns: LEDGER_COLUMNS, members: CSV_MEMBERS, shown: withCause };
  return following({ first: rowsOf(begin), more }, form, everyMs, follower);
}

function anotherAccount(name: string, id: string): CliFailure {
  return new CliFailure(
    1,
    `${name} is now the name of another account; the lines so far are of ${id}.\nFollow that account by its new name.`,
  );
}

type Pages = AsyncGenerator<readonly JsonObject[], void, void>;
type First = IteratorResult<readonly JsonObject[], void>;

/** Rows, page by page. The message of a failure in the middle says how to continue. */
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
  const words = `The output is incomplete: it ends with line ${after}. To continue, use --after ${after}`;
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
  const again = `${admin.command} ledger show${optionWords({ account, limit })} --attempts`;
  const more = (next: string) => `More: ${again} --after ${next}\n`;
  return withMore({ ...body, items }, text, more);
}

/** One row per attempt. One of a request's lines has its attempts, in order. */
function attemptRows(lines: readonly JsonObject[]): JsonObject[] {
  return lines.flatMap(({ seq, at, reference, attempts }) => {
    const listed = Array.isArray(attempts) ? (attempts as readonly JsonObject[]) : [];
    return listed.map((one, index) => ({ seq, at, reference, attempt: index + 1, ...one }));
  });
}

/** Defines `tollgate ledger`. */
export function addLedgerCommands(program: Command, ask: Ask, follow: Follow): void {
  const ledger = program.command("ledger").description("the ledger: all movements of money");
  ledger
    .command("show")
    .description("show an account's ledger, oldest first, page by page")
    .requiredOption("--account <name>", "the account")
    .option("--last <count>", `number of newest lines, newest first, at most ${LAST_MAX}`)
    .option("--since <when>", "no lines before this time, newest first: 24h, 7d, or an instant (2026-11-01T00:00:00Z)")
    .option("--before <seq>", "with --last or --since: only lines before this one")
    .option("--after <seq>", "only lines after this one")
    .option("--limit <count>", "lines per page, at most 1000")
    .option("--request <id>", "only lines of this request, by the id that its client got: req_...")
    .option("--follow", FOLLOW)
    .option("--every <duration>", EVERY, "1s")
    .option("--attempts", "show the attempts at upstreams for the charges, with their costs and who pays")
    .addOption(
      new Option("--format <format>", "table shows a page; csv and json export the whole ledger")
        .choices(LISTING_FORMATS)
        .default("table"),
    )
    .action((options: LedgerOptions) => follow((c, follower) => showOrExport(c, options, follower), options));
  addVerifyCommand(ledger, ask);
  addArchiveCommand(ledger, ask);
}
