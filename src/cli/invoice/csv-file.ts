/** Reads a CSV file row by row, however large it is; the only file that imports the parser. */
import { createReadStream } from "node:fs";
import { CsvError, parse } from "csv-parse";
import { CliFailure } from "../failure.ts";

/** Characters that one row may have. */
const ROW_CHARS_MAX = 1_000_000;

/** A row and the line on which it ends; the first line is 1. */
export interface CsvRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * The rows of a file, empty lines left out, blanks around cells cut off. UTF-8 or, with a byte-order mark, UTF-16.
 * @throws CliFailure 2 for a file that cannot be read or is no CSV, with the line and the reason
 */
export async function* csvRows(path: string): AsyncGenerator<CsvRow, void, void> {
  const parser = parse({
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
    throw failureOf(path, error);
  } finally {
    file.destroy();
    parser.destroy();
  }
}

function failureOf(path: string, error: unknown): unknown {
  if (error instanceof CsvError) {
    const line = Number((error as unknown as { lines?: number }).lines ?? 0);
    return badLine(path, line, REASONS[error.code] ?? error.message);
  }
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
  CSV_INVALID_CLOSING_QUOTE: "behind a closing quote stands neither a comma nor the end of the line",
  CSV_MAX_RECORD_SIZE: `a row has more than ${ROW_CHARS_MAX} characters; perhaps a quote is never closed`,
};

/** What is wrong with a line of a file. */
export function badLine(path: string, line: number, reason: string): CliFailure {
  return new CliFailure(2, `${path}, line ${line}: ${reason}.`);
}
