/** CSV files that are safe to open in spreadsheets. src/cli/output/csv.ts has the same rules for the command line. */

type Cell = string | number;

const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;
/** Characters that are invisible or blank. */
const UNSEEN = String.raw`[\p{White_Space}\p{C}\p{M}\p{Default_Ignorable_Code_Point}\u2800]`;
/** Characters that start a formula, in all their widths. */
const OPERATOR = String.raw`[=+\-@\u2212\u207A-\u207C\u208A-\u208C\uFE62\uFE63\uFE66\uFE6B\uFF0B\uFF0D\uFF1D\uFF20]`;
const FORMULA = new RegExp(`^(?:[\\t\\r\\n\\0]|${UNSEEN}*${OPERATOR})`, "u");
/** Programs that split at semicolons or tabs see additional cells within ours. */
const FORMULA_INSIDE = new RegExp(`(\\r\\n|[;\\t\\r\\n])(?=(?:"|${UNSEEN})*${OPERATOR})`, "gu");

/** RFC 4180. Text that a spreadsheet would interpret as a formula gets an apostrophe in front (CWE-1236). */
export function csv(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

function field(value: Cell): string {
  const text = String(value);
  const safe = NUMBER.test(text) ? text : defused(text);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function defused(text: string): string {
  const inside = text.replace(FORMULA_INSIDE, "$1'");
  return FORMULA.test(text) ? `'${inside}` : inside;
}

/** Saves a table as a file in the browser. */
export function download(name: string, text: string): void {
  // The byte order mark makes spreadsheets read it as UTF-8.
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
