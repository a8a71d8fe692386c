/** Sums a vendor's export of usage by UTC day and model. */

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
/** Number of lines in which the heading is searched. */
const HEADING_LINES_MAX = 50;
/** Largest number of combinations of day and model. */
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
  /** The figures that the file has. */
  readonly tells: readonly (keyof InvoiceFigures)[];
}

interface InvoiceOptions {
  readonly columns: ReturnType<typeof readColumnNames>;
  /** Days to read, inclusive; default: all. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/**
 * Reads an export. Cells are separated by commas. If no heading is found that way, semicolons and tabs are tried, which
 * spreadsheets use if their decimals have commas.
 * @throws CliFailure 2 for an unusable file, with the line and the reason
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
    // With this separator it is not CSV at all; the problem found with commas is reported.
    if (!(error instanceof CliFailure)) throw error;
  }
  return false;
}

/** @param begun `isFound` is set when the heading is found. */
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

/**
 * Refuses commas in numbers if the separator is not a comma: the comma in `1,234` may be a decimal or a thousands
 * separator.
 */
function refuseCommas(path: string, { line, cells }: CsvRow, columns: Columns): void {
  for (const role of ["input", "beside", "output", "cost"] as const) {
    const text = columns[role].map((place) => cells[place] ?? "").find((cell) => cell.includes(","));
    if (text === undefined) continue;
    const why = "is ambiguous: its comma may separate decimals or thousands. Export numbers with a decimal point";
    throw badLine(path, line, `the ${role === "beside" ? "input" : role} ${JSON.stringify(text.slice(0, 60))} ${why}`);
  }
}

/** Reads a row; undefined if it has no usage. The cost is not in nano-dollars yet. */
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
  if (model === "") throw badLine(path, line, "it has usage but no model");
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
    if (endsAt - at > DAY_MS)
      throw badLine(path, line, `it covers several days, from ${date} to ${end}; export by day`);
  }
  return { day: utcDay(at), model: modelOf(model), figures };
}

/** A line item names the model, and after a comma the kind of usage: `big-1, cached input`. */
function modelOf(text: string): string {
  return text.split(", ")[0] as string;
}

/* Reads a CSV file of any size row by row. Only this file imports the parser. */

/** Largest number of characters in a row. */
const ROW_CHARS_MAX = 1_000_000;

/** A row and the line on which it ends; the first line is 1. */
interface CsvRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * The rows of a file, without empty lines and without spaces around cells. UTF-8 or, with a byte-order mark, UTF-16.
 * @throws CliFailure 2 for a file that cannot be read or is not CSV, with the line and the reason
 */
async function* csvRows(path: string, separator: string): AsyncGenerator<CsvRow, void, void> {
  // Imported here, because only one command needs it and every start of the program loads this file.
  const { CsvError: FaultOfCsv, parse } = await import("csv-parse");
  const parser = parse({
    delimiter: separator,
    bom: true,
    info: true,
    trim: true,
    skip_empty_lines: true,
    // The caller knows the heading and checks the number of cells.
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
  ENOENT: "does not exist",
  EISDIR: "is a folder",
  EACCES: "is not readable for this user",
};

const REASONS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: "a quote that opens here is never closed",
  INVALID_OPENING_QUOTE: "there is a quote inside a cell that does not begin with one",
  CSV_INVALID_CLOSING_QUOTE: "a closing quote is not followed by a separator or the end of the line",
  CSV_MAX_RECORD_SIZE: `a row has more than ${ROW_CHARS_MAX} characters; perhaps a quote is never closed`,
};

/** What is wrong with a line of a file. */
function badLine(path: string, line: number, reason: string): CliFailure {
  return new CliFailure(2, `${path}, line ${line}: ${reason}.`);
}
