/** `tollgate reconcile`: compares a vendor's export of usage with what the upstream bills according to the ledger. */

import { readSpan } from "../store/sums/day-sums.ts";
import type { JsonObject } from "../values/json-object.ts";
import { formatUsd } from "../values/money.ts";
import { type AdminClient, retryingClient, segment } from "./admin-client.ts";
import { type CommandResult, itemsOf, query } from "./admin-commands.ts";
import { readAmount } from "./amounts.ts";
import { type Ask, type Command, listingFormat, pathOf } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { readColumnNames } from "./invoice/columns.ts";
import { type Compared, type Comparison, compareFigures, type Figure } from "./invoice/compare.ts";
import { addFigures, type ByDay, type Invoice, NO_FIGURES, readInvoice } from "./invoice/invoice.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { cell, table } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";

interface ReconcileOptions extends ListingOptions {
  readonly from: string;
  readonly upstream: string;
  readonly share: string;
  readonly since?: string;
  readonly until?: string;
  readonly columns?: string;
  /** `THEIRS=OURS`, once per name that differs. */
  readonly model?: readonly string[];
  readonly allModels?: true;
}

/** @throws CliFailure 2 for invalid options and for an unusable file */
export async function reconcile(
  impatient: AdminClient,
  options: ReconcileOptions,
  terminal: Terminal,
): Promise<CommandResult> {
  const { upstream } = options;
  const share = readShare(options.share);
  const names = readNames(options.model ?? []);
  for (const member of ["since", "until"] as const) checkDay(member, options[member]);
  const { since, until } = options;
  const columns = options.columns === undefined ? new Map() : readColumnNames(options.columns);
  const invoice = await readInvoice(options.from, { columns, since, until });
  const span = spanOf(options, invoice);
  const ours = await readOurs(retryingClient(impatient, terminal), upstream, span, terminal);
  const comparison = compareFigures(invoice.byDay, ours, {
    ...{ share, names, tells: invoice.tells },
    allModels: options.allModels === true,
  });
  const json = {
    ...{ upstream, ...span, share },
    items: comparison.items.map(shown),
    differing: comparison.differing,
    other_models: [...comparison.others].map(([model, { input, output, cost }]) => ({
      ...{ model, input, output, cost_usd: formatUsd(cost) },
    })),
  };
  const words = wordsOf(comparison, upstream, span, {
    isBlank: ours.size === 0,
    tells: invoice.tells,
    command: impatient.command,
  });
  const { format = "table" } = options;
  const members = CSV_MEMBERS.map((member) => ({ title: member, member }));
  const text = format === "table" ? words : listing({ format }, { columns: members, rows: json.items, json, none: "" });
  const { items, others, differing } = comparison;
  if (differing.length > 0) return { json, text, failure: complaint(comparison, share) };
  // A mistyped upstream or model must not look like an invoice that matches.
  if (items.length === 0 && others.size > 0) return { json, text, failure: NOTHING_COMPARED };
  return { json, text };
}

function readShare(text: string): number {
  const share = /^(?:0|1|0?\.\d{1,9}|[01]\.\d{1,9})$/.test(text) ? Number(text) : Number.NaN;
  if (!(share >= 0 && share <= 1)) throw new CliFailure(2, "--share must be a number from 0 to 1, such as 0.02.");
  return share;
}

function checkDay(member: "since" | "until", day: string | undefined): void {
  if (day === undefined) return;
  const span = readSpan({ since: day, until: day }, 0);
  if ("rule" in span) throw new CliFailure(2, `--${member} must be a day of the calendar, YYYY-MM-DD.`);
}

function readNames(pairs: readonly string[]): Map<string, string> {
  return new Map(
    pairs.map((pair): [string, string] => {
      const at = pair.lastIndexOf("=");
      if (at < 1 || at === pair.length - 1) {
        throw new CliFailure(2, "--model must be THEIRS=OURS: the vendor's model name, then the route's.");
      }
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** The days to compare. Default: from the first to the last day of the file. */
function spanOf({ since, until, from }: ReconcileOptions, { byDay }: Invoice): { since: string; until: string } {
  const days = [...byDay.keys()].sort();
  const [first, last] = [since ?? days[0] ?? until, until ?? days.at(-1) ?? since];
  if (first === undefined || last === undefined) {
    throw new CliFailure(2, `${from}: no line has any usage. Set the days with --since and --until.`);
  }
  const span = readSpan({ since: first, until: last }, 0);
  if ("rule" in span)
    throw new CliFailure(2, `The days from ${first} to ${last}: ${span.member} must be ${span.rule}.`);
  return span;
}

async function readOurs(
  admin: AdminClient,
  upstream: string,
  span: { since: string; until: string },
  terminal: Terminal,
): Promise<ByDay> {
  const ours: ByDay = new Map();
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { body } = await admin.call("GET", `/upstreams/${segment(upstream)}/usage${query({ ...span, cursor })}`);
    for (const item of itemsOf(body)) addItem(ours, item);
    cursor = typeof body.next === "string" ? body.next : undefined;
    pages += 1;
    if (cursor !== undefined) terminal.progress(`Summing up: ${pages} pages`);
  } while (cursor !== undefined);
  terminal.clear();
  return ours;
}

function addItem(ours: ByDay, item: JsonObject): void {
  const [day, model] = [String(item.day), String(item.model)];
  const models = ours.get(day) ?? new Map();
  ours.set(day, models);
  const count = (member: string) => Number(item[member] ?? 0);
  const input = count("input_tokens") + count("cached_input_tokens") + count("cache_write_tokens");
  const figures = { input, output: count("output_tokens"), cost: readAmount(item.cost_usd) };
  models.set(model, addFigures(models.get(model) ?? NO_FIGURES, figures));
}

const NOTHING_COMPARED =
  "Nothing was compared: the ledger has none of the file's models on these days.\n" +
  "Correct --upstream, --since or --until, or map model names with --model THEIRS=OURS.";

const COLUMNS = [
  { title: "DAY", member: "day" },
  { title: "MODEL", member: "model" },
  { title: "FIGURE", member: "figure" },
  { title: "THEIRS", member: "theirs", right: true },
  { title: "OURS", member: "ours", right: true },
  { title: "DIFFERENCE", member: "difference", right: true },
  { title: "SHARE", member: "share_percent", right: true },
  { title: "", member: "mark" },
] as const;

const CSV_MEMBERS = ["day", "model", "figure", "theirs", "ours", "difference", "share", "differs"] as const;

const FIGURE_NAMES: Readonly<Record<Figure, string>> = { input: "input", output: "output", cost: "cost_usd" };

function shown({ day, model, figure, theirs, ours, share, differs }: Compared): JsonObject {
  const write = (amount: bigint) => (figure === "cost" ? formatUsd(amount) : Number(amount));
  return {
    ...{ day, model, figure: FIGURE_NAMES[figure] },
    ...{ theirs: write(theirs), ours: write(ours), difference: write(theirs - ours), share, differs },
  };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

function wordsOf(
  { items, differing, others }: Comparison,
  upstream: string,
  { since, until }: { since: string; until: string },
  { isBlank, tells, command }: { isBlank: boolean; tells: Invoice["tells"]; command: string },
): string {
  const rows = items.map((item) => ({
    ...shown(item),
    share_percent: percent(item.share),
    mark: item.differs ? "differs" : " ",
  }));
  const heading = `The upstream ${cell(upstream)} from ${since} to ${until}, UTC\n`;
  const blank = isBlank
    ? `The ledger has no entries for it; \`${command} usage --by upstream\` lists the upstreams that it has.\n`
    : "";
  const unknown = [...others].map(
    ([model, { input, output, cost }]) =>
      `Not compared, because the ledger has no entries for it: ${cell(model)}, ${input} input, ${output} output, ${formatUsd(cost)} USD.\n`,
  );
  const silent = (["input", "output", "cost"] as const).filter((figure) => !tells.includes(figure));
  const notCompared =
    silent.length === 0
      ? ""
      : `Not compared, because no known column has it: ${silent.map((figure) => FIGURE_NAMES[figure]).join(", ")}. Name its column with --columns.\n`;
  const days = new Set(differing.map(({ day }) => day)).size;
  const places = new Set(items.map(({ day, model }) => `${day} ${model}`)).size;
  const sum = `Days and models compared: ${places}; different: ${differing.length}, on ${days} days.\n`;
  return heading + blank + (rows.length > 0 ? table(COLUMNS, rows) : "") + unknown.join("") + notCompared + sum;
}

function complaint({ items, differing }: Comparison, share: number): string {
  const lines = differing.map(({ day, model }) => {
    const worst = items.filter((item) => item.differs && item.day === day && item.model === model);
    const figures = worst.map((item) => `${FIGURE_NAMES[item.figure]} by ${percent(item.share)}`);
    return `${day}, ${cell(model)}: ${figures.join(", ")}.`;
  });
  return [`Different by more than ${percent(share)}:`, ...lines].join("\n");
}

/** Defines `tollgate reconcile`. */
export function addReconcileCommand(program: Command, ask: Ask): void {
  program
    .command("reconcile")
    .description("compare a vendor's export of usage with the ledger's figures of an upstream, by day and model")
    .requiredOption("--from <file>", "the vendor's export, a CSV file with a heading", pathOf)
    .requiredOption("--upstream <name>", "the upstream that the export belongs to")
    .option("--share <share>", "report days that differ by more than this share", "0.02")
    .option("--since <day>", "first day, YYYY-MM-DD; default: the first day of the file")
    .option("--until <day>", "last day, YYYY-MM-DD; default: the last day of the file")
    .option("--columns <names>", "names of the file's columns: date=...,model=...,input=A+B,output=...,cost=...")
    .option("--model <names...>", "THEIRS=OURS, for models that have another name at the vendor than in the route")
    .option("--all-models", "also report models that the ledger has no entries for")
    .addOption(listingFormat())
    .action((options: ReconcileOptions) => ask((c, terminal) => reconcile(c, options, terminal)));
}
