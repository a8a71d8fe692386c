/** Tables for spreadsheets. */
import type { JsonObject } from "../../values/json-object.ts";

/**
 * RFC 4180, with a heading. A text that a spreadsheet would take for a formula gets an apostrophe in front; an amount,
 * which may begin with a minus, stays as it is.
 * @param members the columns, in order; their names are the heading.
 */
export function csv(members: readonly string[], rows: readonly JsonObject[]): string {
  return csvRow(members) + csvRows(members, rows);
}

/** The same without the heading, for a table that is written a page at a time. */
export function csvRows(members: readonly string[], rows: readonly JsonObject[]): string {
  return rows.map((row) => csvRow(members.map((member) => row[member]))).join("");
}

function csvRow(values: readonly unknown[]): string {
  return `${values.map(field).join(",")}\r\n`;
}

const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;

/** Characters that show as nothing or as a blank: spaces of every width, control and format characters, a BOM, NUL. */
const UNSEEN = String.raw`[\p{White_Space}\p{C}\p{M}\p{Default_Ignorable_Code_Point}\u2800]`;
/** What begins a formula, in every width in which it is written: `＝`, `﹢`, `－`, `＠`, the minus sign. */
const OPERATOR = String.raw`[=+\-@\u2212\u207A-\u207C\u208A-\u208C\uFE62\uFE63\uFE66\uFE6B\uFF0B\uFF0D\uFF1D\uFF20]`;

/** Tab and line ends count by themselves: some programs drop them and read on. */
const FORMULA = new RegExp(`^(?:[\\t\\r\\n\\0]|${UNSEEN}*${OPERATOR})`, "u");
/**
 * A program that splits at semicolons or tabs finds cells inside of ours, and takes our quotes for ones around them: `""=1+1`
 * is an empty text in quotes to it, and a formula after that.
 */
const FORMULA_INSIDE = new RegExp(`(\\r\\n|[;\\t\\r\\n])(?=(?:"|${UNSEEN})*${OPERATOR})`, "gu");

/** One cell. What may begin a formula is marked as text by an apostrophe (CWE-1236). */
function field(value: unknown): string {
  const text = typeof value === "object" ? (value === null ? "" : JSON.stringify(value)) : String(value ?? "");
  const safe = NUMBER.test(text) ? text : defused(text);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function defused(text: string): string {
  const inside = text.replace(FORMULA_INSIDE, "$1'");
  return FORMULA.test(text) ? `'${inside}` : inside;
}
