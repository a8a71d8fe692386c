/** No cell of a CSV table starts a formula, whatever characters precede the operator, in any width. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { csv } from "../../../src/cli/output/csv.ts";

/** The only cell of a table with one column, as a reader of RFC 4180 decodes it. */
function cellOf(value: unknown): string {
  const [, text = ""] = /^note\r\n([\s\S]*)\r\n$/.exec(csv(["note"], [{ note: value }])) ?? [];
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}

const OPERATORS = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫", "−", "⁺", "₌"];
const BLANKS = [
  " ",
  "\t",
  "\r",
  "\n",
  "\r\n",
  "\0",
  "\u00a0",
  "\u00ad",
  "\u034f",
  "\u061c",
  "\u1680",
  "\u180e",
  "\u200b",
  "\u200d",
  "\u200e",
  "\u2028",
  "\u202f",
  "\u2060",
  "\u2800",
  "\u3000",
  "\u3164",
  "\ufe0f",
  "\ufeff",
  "\u{e0020}",
];

test("a cell that starts with an operator is marked as text, also after any blank", () => {
  for (const operator of OPERATORS) {
    const formula = `${operator}HYPERLINK("http://127.0.0.1/"&A1)`;
    assert.equal(cellOf(formula), `'${formula}`);
    for (const blank of BLANKS) {
      for (const text of [`${blank}${formula}`, `${blank}${blank} ${formula}`]) {
        assert.equal(cellOf(text)[0], "'", JSON.stringify(text));
        assert.ok(cellOf(text).endsWith(formula));
      }
    }
  }
});

test("a tab or line end at the start of a cell is marked, too", () => {
  for (const first of ["\t", "\r", "\n", "\0"]) assert.equal(cellOf(`${first}x`), `'${first}x`);
});

test("a program that splits at semicolons or tabs finds no formula inside a cell", () => {
  assert.equal(cellOf("paid;=1+1"), "paid;'=1+1");
  assert.equal(cellOf("paid\t \u200b＝1+1;@x"), "paid\t' \u200b＝1+1;'@x");
  assert.equal(cellOf("one\r\n-2+3"), "one\r\n'-2+3");
  // Next to other cells, such a program sees `""=1+1` after the semicolon: an empty text, and a formula.
  assert.equal(cellOf('paid;"=1+1;x'), `paid;'"=1+1;x`);
  assert.equal(csv(["at", "note"], [{ at: 1, note: 'paid;"=1+1;x' }]), `at,note\r\n1,"paid;'""=1+1;x"\r\n`);
  assert.equal(cellOf('paid;"" \ufeff"＝1+1'), `paid;'"" \ufeff"＝1+1`);
});

test("amounts, ordinary words and JSON stay as they are", () => {
  const harmless = ["-1.50", "-7", "0.000000001", "", "a=b", "1-2", " a note", "mail@example.com", "ümläut; and more"];
  for (const text of harmless) assert.equal(cellOf(text), text);
  assert.equal(cellOf(-1.5), "-1.5");
  assert.equal(cellOf({ input: -1, list: [1, -2] }), '{"input":-1,"list":[1,-2]}');
});

test("for arbitrary text, no cell starts with an operator after its blanks", () => {
  const alphabet = fc.constantFrom(...OPERATORS, ...BLANKS, ";", '"', ",", "'", "a", "1");
  fc.assert(
    fc.property(fc.string({ unit: alphabet, maxLength: 12 }), (text) => {
      const cell = cellOf(text);
      if (/^-?[0-9]+$/.test(text)) return;
      for (const part of cell.split(/[;\t\r\n]/)) {
        const [first = ""] = part.normalize("NFKC").replace(/^(?:[\p{C}\p{Z}\s]|\p{M}|[\u2800\u3164\u1160])+/u, "");
        assert.ok(!"=+-@\u2212".includes(first) || first === "", JSON.stringify([text, cell]));
      }
      assert.equal(cell.replaceAll("'", ""), text.replaceAll("'", ""), "nothing is lost");
    }),
    { numRuns: 2_000 },
  );
});
