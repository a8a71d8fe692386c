/** What a vendor's export of usage comes to, by UTC day and model. */

import { createReadStream } from "node:fs";
import type { CsvError } from "csv-parse";
import { utcDay } from "../../values/time.ts";
import { CliFailure } from "../failure.ts";
import {
  type Columns,
  columnsOf,
  nanoOfCost,
  type readColumnNames,
  readCost,
  readCount,
  readInstant,
} from "./columns.ts";

const DAY_MS = 86_400_000;
/** Lines above the heading that are looked through for it. */
const HEADING_LINES_MAX = 50;
/** Days times models that are added up. */
const PLACES_MAX = 200_000;
/** Longest name of a model. */
const NAME_CHARS_MAX = 256;

/** Tokens, and nano-dollars. */
export interface InvoiceFigures {
  /** All input tokens, cached ones included. */
  readonly input: number;
  readonly output: number;
  readonly cost: bigint;
}

export const NO_FIGURES: InvoiceFigures = Object.freeze({ input: 0, output: 0, cost: 0n });

/** Figures by day (`YYYY-MM-DD`), then by model. */
export type ByDay = Map<string, Map<string, InvoiceFigures>>;

export interface Invoice {
  readonly byDay: ByDay;
  /** What the file covers. */
  readonly tells: readonly (keyof InvoiceFigures)[];
}

interface InvoiceOptions {
  readonly columns: ReturnType<typeof readColumnNames>;
  /** Days to read, both included; all when left out. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/**
 * Cells are separated by commas, or, where there is no heading that way, by semicolons or tabs, as spreadsheets write them whose
 * decimals have commas.
 * @throws CliFailure 2 for a file that is none, with the line and the reason
 */
export async function readInvoice(path: string, options: InvoiceOptions): Promise<Invoice> {
  const begun = { isFound: false };
  try {
    return await readSeparated(path, ",", options, begun);
  } catch (error) {
    if (begun.isFound || !(error instanceof CliFailure)) throw error;
    for (const separator of [";", "\t"]) {
      if (await hasHeading(path, separator, options)) return readSeparated(path, separator, options, begun);
    }
    throw error;
  }
}

async function hasHeading(path: string, separator: string, options: InvoiceOptions): Promise<boolean> {
  try {
    let lines = 0;
    for await (const row of csvRows(path, separator)) {
      if (!("missing" in headingOf(path, row, options))) return true;
      lines += 1;
      if (lines >= HEADING_LINES_MAX) break;
    }
  } catch (error) {
    // Separated otherwise it is no CSV at all; what is wrong with it as it was tried first is said.
    if (!(error instanceof CliFailure)) throw error;
  }
  return false;
}

/** @param begun is told once there is a heading. */
async function readSeparated(
  path: string,
  separator: string,
  options: InvoiceOptions,
  begun: { isFound: boolean },
): Promise<Invoice> {
  const sums = new Map<string, Map<string, InvoiceFigures>>();
  let columns: Columns | undefined;
  let width = 0;
  let places = 0;
  let nearest = { missing: "no lines", lacks: Number.POSITIVE_INFINITY };
  let above = 0;
  for await (const row of csvRows(path, separator)) {
    if (!columns) {
      const found = headingOf(path, row, options);
      if ("missing" in found) {
        if (found.lacks < nearest.lacks) nearest = found;
        above += 1;
        if (above >= HEADING_LINES_MAX) break;
        continue;
      }
      columns = found;
      begun.isFound = true;
      width = row.cells.length;
      continue;
    }
    if (separator !== ",") refuseCommas(path, row, columns);
    const read = readRow(path, row, columns, width);
    if (!read) continue;
    const { day, model, figures } = read;
    if ((options.since !== undefined && day < options.since) || (options.until !== undefined && day > options.until)) {
      continue;
    }
    const models = sums.get(day) ?? new Map<string, InvoiceFigures>();
    sums.set(day, models);
    const before = models.get(model);
    if (!before) places += 1;
    if (places > PLACES_MAX) throw badLine(path, row.line, `there are more than ${PLACES_MAX} days and models`);
    models.set(model, before ? addFigures(before, figures) : figures);
  }
  if (!columns) {
    const remedy = "Name the columns with --columns date=...,model=...,input=...,output=...,cost=...";
    throw new CliFailure(2, `${path}: no heading was found: ${nearest.missing}. ${remedy}`);
  }
  for (const models of sums.values()) {
    for (const [model, figures] of models) models.set(model, { ...figures, cost: nanoOfCost(figures.cost) });
  }
  const kinds = ["input", "output", "cost"] as const;
  const shown = columns;
  return { byDay: sums, tells: kinds.filter((kind) => shown[kind].length > 0) };
}

function headingOf(path: string, { line, cells }: CsvRow, { columns }: InvoiceOptions): ReturnType<typeof columnsOf> {
  try {
    return columnsOf(cells, columns);
  } catch (error) {
    if (error instanceof CliFailure) throw new CliFailure(2, `${path}, line ${line}: ${error.message}`);
    throw error;
  }
}

export function addFigures(a: InvoiceFigures, b: InvoiceFigures): InvoiceFigures {
  return { input: a.input + b.input, output: a.output + b.output, cost: a.cost + b.cost };
}

/** Beside another separator a comma may be for decimals: `1,234` would be a thousand times what was meant, or a thousandth. */
function refuseCommas(path: string, { line, cells }: CsvRow, columns: Columns): void {
  for (const role of ["input", "beside", "output", "cost"] as const) {
    const text = columns[role].map((place) => cells[place] ?? "").find((cell) => cell.includes(","));
    if (text === undefined) continue;
    const why = "is not read: its comma may be for decimals or for thousands. Export numbers with a decimal point";
    throw badLine(path, line, `the ${role === "beside" ? "input" : role} ${JSON.stringify(text.slice(0, 60))} ${why}`);
  }
}

/** A row of a day; undefined for one without usage. Its cost is not in nano-dollars yet. */
function readRow(
  path: string,
  { line, cells }: CsvRow,
  columns: Columns,
  width: number,
): { readonly day: string; readonly model: string; readonly figures: InvoiceFigures } | undefined {
  if (cells.length !== width) {
    throw badLine(path, line, `it has ${cells.length} cells, the heading has ${width}`);
  }
  const cellsOf = (role: keyof Columns) => columns[role].map((place) => cells[place] ?? "");
  const bad = (role: string, text: string, must: string) =>
    badLine(path, line, `the ${role} ${JSON.stringify(text.slice(0, 60))} is not ${must}`);
  const count = (role: "input" | "beside" | "output") =>
    cellsOf(role).reduce((sum, text) => {
      const read = readCount(text);
      if (read === undefined) throw bad(role === "output" ? "output" : "input", text, "a whole number of tokens");
      return sum + read;
    }, 0);
  const cost = cellsOf("cost").reduce((sum, text) => {
    const read = readCost(text);
    if (read === undefined) throw bad("cost", text, "an amount of US dollars, such as 1,234.56");
    return sum + read;
  }, 0n);
  const figures = { input: count("input") + count("beside"), output: count("output"), cost };
  const isEmpty = figures.input === 0 && figures.output === 0 && figures.cost === 0n;
  const [model = ""] = cellsOf("model");
  // Vendors list days without usage, and models that were not used.
  if (isEmpty) return undefined;
  if (model === "") throw badLine(path, line, "it has usage and names no model");
  if (model.length > NAME_CHARS_MAX) throw bad("model", model, `a name of up to ${NAME_CHARS_MAX} characters`);
  for (const text of cellsOf("currency")) {
    if (text !== "" && text.toUpperCase() !== "USD") throw bad("currency", text, "USD");
  }
  const [date = ""] = cellsOf("date");
  const at = readInstant(date);
  if (at === undefined) throw bad("date", date, "a day or an instant, such as 2026-08-31");
  const [end = ""] = cellsOf("end");
  if (end !== "") {
    const endsAt = readInstant(end);
    if (endsAt === undefined) throw bad("end", end, "a day or an instant, such as 2026-08-31");
    if (endsAt - at > DAY_MS) throw badLine(path, line, `it is of several days, from ${date} to ${end}: export by day`);
  }
  return { day: utcDay(at), model: modelOf(model), figures };
}

/** A line item names the model, and after a comma what of it was used: `big-1, cached input`. */
function modelOf(text: string): string {
  return text.split(", ")[0] as string;
}

/* Reads a CSV file row by row, however large it is; the only file that imports the parser. */

/** Characters that one row may have. */
const ROW_CHARS_MAX = 1_000_000;

/** A row and the line on which it ends; the first line is 1. */
interface CsvRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * The rows of a file, empty lines left out, blanks around cells cut off. UTF-8 or, with a byte-order mark, UTF-16.
 * @throws CliFailure 2 for a file that cannot be read or is no CSV, with the line and the reason
 */
async function* csvRows(path: string, separator: string): AsyncGenerator<CsvRow, void, void> {
  // Read by the one command that needs it: every start of the program passes here.
  const { CsvError: FaultOfCsv, parse } = await import("csv-parse");
  const parser = parse({
    delimiter: separator,
    bom: true,
    info: true,
    trim: true,
    skip_empty_lines: true,
    // The caller, which knows the heading, judges the number of cells.
    relax_column_count: true,
    max_record_size: ROW_CHARS_MAX,
  });
  const file = createReadStream(path);
  file.on("error", (error) => parser.destroy(error));
  try {
    for await (const { record, info } of file.pipe(parser) as AsyncIterable<{
      record: string[];
      info: { lines: number };
    }>) {
      yield { line: info.lines, cells: record };
    }
  } catch (error) {
    throw error instanceof FaultOfCsv ? badRow(path, error) : failureOf(path, error);
  } finally {
    file.destroy();
    parser.destroy();
  }
}

function badRow(path: string, error: CsvError): CliFailure {
  const line = Number((error as unknown as { lines?: number }).lines ?? 0);
  return badLine(path, line, REASONS[error.code] ?? error.message);
}

function failureOf(path: string, error: unknown): unknown {
  if (error instanceof Error && "code" in error && "syscall" in error) {
    return new CliFailure(
      2,
      `The file ${path} ${FILE_REASONS[String(error.code)] ?? `cannot be read (${error.code})`}.`,
    );
  }
  return error;
}

const FILE_REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  EISDIR: "is a folder",
  EACCES: "may not be read by this user",
};

const REASONS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: "a quote is opened here and never closed",
  INVALID_OPENING_QUOTE: "a quote stands within a cell that does not begin with one",
  CSV_INVALID_CLOSING_QUOTE: "behind a closing quote stands neither a separator nor the end of the line",
  CSV_MAX_RECORD_SIZE: `a row has more than ${ROW_CHARS_MAX} characters; perhaps a quote is never closed`,
};

/** What is wrong with a line of a file. */
function badLine(path: string, line: number, reason: string): CliFailure {
  return new CliFailure(2, `${path}, line ${line}: ${reason}.`);
}
