/** The estimated tokens of a text, character by character; neither cuts nor the way it is read change the sum. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TextTokens } from "../../../src/values/tokens/text.ts";

/** Twentieths of a token, as in docs/decisions/what-a-disconnect-costs.md. */
const TEXTS: readonly (readonly [text: string, twentieths: number])[] = [
  ["hello", 25],
  ["Hello World", 57],
  ["HTTP", 30],
  ["a b", 25],
  ["x1", 25],
  ["1x", 34],
  ["1234567", 62],
  ["12.5", 54],
  ["7.", 32],
  ["....", 18],
  ["=>", 22],
  ["->!", 35],
  ["aaaaaaaaaaaaaaaaaaaa", 100],
  ["abcdefghijklm", 71],
  ["abcdefghijklmnopq", 115],
  ["a\n", 30],
  ["\n\n\n", 3],
  ["one\n\n  two", 48],
  ["\t\tif (a) {", 54],
  ["é", 12],
  ["漢字", 46],
  ["привет", 66],
  ["😀", 58],
  ["camelCase", 65],
  ["2Do", 39],
  ["doX9", 55],
  ["\u0000\u0001\u0001", 19],
];

function twentieths(add: (tokens: TextTokens) => void): number {
  const tokens = new TextTokens();
  add(tokens);
  return Math.round(tokens.tokens * 20);
}

for (const [text, expected] of TEXTS) {
  test(`the estimated tokens of ${JSON.stringify(text)}`, () => {
    assert.equal(
      twentieths((tokens) => tokens.add(text)),
      expected,
    );
    const inUnits = twentieths((tokens) => {
      for (let i = 0; i < text.length; i++) tokens.add(text.charAt(i));
    });
    assert.equal(inUnits, expected, "code unit by code unit");
  });
}

test("each script has its weight, from its first character to its last", () => {
  const weight = (code: number) => twentieths((tokens) => tokens.add(String.fromCharCode(code)));
  for (const [first, last, expected] of [
    [0x80, 0x17f, 12],
    [0x180, 0x24f, 40],
    [0x370, 0x3ff, 20],
    [0x400, 0x45f, 11],
    [0x590, 0x6ff, 20],
    [0x1e00, 0x1eff, 24],
    [0x2000, 0x202f, 20],
    [0x3000, 0x33ff, 22],
    [0x4e00, 0x9fff, 23],
    [0xa000, 0xabff, 60],
    [0xac00, 0xd7af, 21],
    [0xd800, 0xdfff, 29],
    [0xff00, 0xffef, 24],
    [0xfff0, 0xffff, 60],
  ] as const) {
    assert.deepEqual([weight(first), weight(last)], [expected, expected], first.toString(16));
  }
});

test("bytes get the same estimate as their text, and a long text the same as its pieces", () => {
  const alphabet = TEXTS.map(([text]) => text).join("");
  let seed = 7;
  const next = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 300; round++) {
    const onlyAscii = round % 2 === 0;
    const length = round % 30 === 0 ? 20_000 : 1 + next(120);
    let text = "";
    while (text.length < length) {
      const code = alphabet.charCodeAt(next(alphabet.length));
      if (!onlyAscii || code < 128) text += String.fromCharCode(code).repeat(next(9) === 0 ? 15 : 1);
    }
    const whole = twentieths((tokens) => tokens.add(text));
    const inPieces = twentieths((tokens) => {
      for (let at = 0; at < text.length; ) {
        const end = at + 1 + next(40);
        tokens.add(text.slice(at, end));
        at = end;
      }
    });
    assert.equal(inPieces, whole, "in pieces");
    if (!onlyAscii) continue;
    const bytes = Buffer.from(`..${text}..`);
    const asBytes = twentieths((tokens) => tokens.addAscii(bytes, 2, bytes.length - 2));
    assert.equal(asBytes, whole, "as bytes");
  }
});
