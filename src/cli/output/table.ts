/**
 * Plain text for people: aligned tables and lists of facts.
 */
import type { JsonObject } from "../../values/json-object.ts";

export interface Column {
  readonly title: string;
  /** The member of each row that is shown. */
  readonly member: string;
  /** Amounts and counts are aligned right. */
  readonly right?: boolean;
}

/** A table with a heading, two spaces between columns, one line per row, and a line feed at the end. */
export function table(columns: readonly Column[], rows: readonly JsonObject[]): string {
  return new GrowingTable(columns).add(rows);
}

/** A table whose rows are added over time: a column is as wide as its widest text so far. */
export class GrowingTable {
  readonly #columns: readonly Column[];
  #widths: readonly number[] = [];

  constructor(columns: readonly Column[]) {
    this.#columns = columns;
  }

  /** @returns the rows; the first time with the heading. */
  add(rows: readonly JsonObject[]): string {
    const columns = this.#columns;
    const heading = this.#widths.length === 0 ? [columns.map(({ title }) => title)] : [];
    const lines = [...heading, ...rows.map((row) => columns.map(({ member }) => cell(row[member])))];
    const widths = columns.map((_, at) =>
      Math.max(this.#widths[at] ?? 0, ...lines.map((line) => line[at]?.length ?? 0)),
    );
    this.#widths = widths;
    return lines.map((line) => `${this.#lineOf(line)}\n`).join("");
  }

  #lineOf(line: readonly string[]): string {
    const padded = line.map((text, at) => {
      const width = this.#widths[at] ?? 0;
      return this.#columns[at]?.right ? text.padStart(width) : text.padEnd(width);
    });
    return padded.join("  ").trimEnd();
  }
}

/** One fact per line, with aligned names. */
export function facts(names: Readonly<Record<string, string>>, record: JsonObject): string {
  const width = Math.max(...Object.values(names).map((name) => name.length));
  return Object.entries(names)
    .map(([member, name]) => `${name.padEnd(width)}  ${cell(record[member])}\n`)
    .join("");
}

/** A value as one cell, without control characters: text from a ledger must not control the terminal. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  return String(value).replaceAll(/\p{C}/gu, "?");
}

/** A count with a noun: `1 code`, `2 codes`. @param count a number, also as text. */
export const many = (count: unknown, name: string): string =>
  `${cell(count)} ${name}${String(count) === "1" ? "" : "s"}`;
