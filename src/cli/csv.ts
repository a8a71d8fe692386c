/** Tables for spreadsheets. */
import type { Fields } from "./admin-client.ts";

/**
 * RFC 4180, with a heading. A text that a spreadsheet would take for a formula gets an apostrophe in front; an amount,
 * which may begin with a minus, stays as it is.
 * @param members the columns, in order; their names are the heading.
 */
export function csv(members: readonly string[], rows: readonly Fields[]): string {
  const lines = [members, ...rows.map((row) => members.map((member) => field(row[member])))];
  return lines.map((cells) => `${cells.join(",")}\r\n`).join("");
}

const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;

function field(value: unknown): string {
  const text = typeof value === "object" ? (value === null ? "" : JSON.stringify(value)) : String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
