/** Tables for spreadsheets. */
import type { JsonObject } from "../../values/json-object.ts";

/**
 * CSV as in RFC 4180, with a heading. Text that a spreadsheet would read as a formula gets an apostrophe in front. An
 * amount, which may begin with a minus, is not changed.
 * @param members the columns, in order; their names are the heading.
 */
export function csv(members: readonly string[], rows: readonly JsonObject[]): string {
  return csvRow(members) + csvRows(members, rows);
}

/** The same without the heading, for a table that is written page by page. */
export function csvRows(members: readonly string[], rows: readonly JsonObject[]): string {
  return rows.map((row) => csvRow(members.map((member) => row[member]))).join("");
}

function csvRow(values: readonly unknown[]): string {
  return `${values.map(field).join(",")}\r\n`;
}

const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;

/** Characters that are invisible or blank: spaces of every width, control and format characters, a BOM, NUL. */
const UNSEEN = String.raw`[\p{White_Space}\p{C}\p{M}\p{Default_Ignorable_Code_Point}\u2800]`;
/** Characters that begin a formula, in all widths: `＝`, `﹢`, `－`, `＠`, the minus sign. */
const OPERATOR = String.raw`[=+\-@\u2212\u207A-\u207C\u208A-\u208C\uFE62\uFE63\uFE66\uFE6B\uFF0B\uFF0D\uFF1D\uFF20]`;

/** A leading tab or line end counts as a formula, because some programs drop it and read on. */
const FORMULA = new RegExp(`^(?:[\\t\\r\\n\\0]|${UNSEEN}*${OPERATOR})`, "u");
/**
 * A program that splits at semicolons or tabs finds cells inside ours and misreads our quotes: it reads `""=1+1` as an
 * empty quoted string followed by a formula.
 */
const FORMULA_INSIDE = new RegExp(`(\\r\\n|[;\\t\\r\\n])(?=(?:"|${UNSEEN})*${OPERATOR})`, "gu");

/** One cell. Text that may begin a formula gets an apostrophe in front (CWE-1236). */
function field(value: unknown): string {
  const text = typeof value === "object" ? (value === null ? "" : JSON.stringify(value)) : String(value ?? "");
  const safe = NUMBER.test(text) ? text : defused(text);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function defused(text: string): string {
  const inside = text.replace(FORMULA_INSIDE, "$1'");
  return FORMULA.test(text) ? `'${inside}` : inside;
}
