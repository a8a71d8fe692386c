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

/** A table with a heading, two blanks between columns, one line per row, a line feed at the end. */
export function table(columns: readonly Column[], rows: readonly JsonObject[]): string {
  const cells = [columns.map((column) => column.title), ...rows.map((row) => columns.map((c) => cell(row[c.member])))];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => (line[index] as string).length)));
  const lines = cells.map((line) =>
    line
      .map((text, index) => {
        const width = widths[index] as number;
        return columns[index]?.right ? text.padStart(width) : text.padEnd(width);
      })
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}

/** One fact a line, the names aligned. */
export function facts(names: Readonly<Record<string, string>>, record: JsonObject): string {
  const width = Math.max(...Object.values(names).map((name) => name.length));
  return Object.entries(names)
    .map(([member, name]) => `${name.padEnd(width)}  ${cell(record[member])}\n`)
    .join("");
}

/** A value as one cell, without control characters: text from a ledger must not steer the terminal. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  return String(value).replaceAll(/\p{C}/gu, "?");
}
