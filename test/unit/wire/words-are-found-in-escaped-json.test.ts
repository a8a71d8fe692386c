/**
 * docs/translation-rules.md rule 38: a value that the gateway sealed is recognised however its letters are escaped, and a body
 * full of escapes takes no longer.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { holdsMatch, holdsText } from "../../../src/wire/json.ts";

const WORDS = "gw1.";

/** A letter, or one of its escapes. */
const written = (letter: string) =>
  fc.constantFrom(
    letter,
    ...[
      `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
      `\\u00${letter.charCodeAt(0).toString(16).toUpperCase()}`,
    ],
  );

test("the words are found exactly where JSON.parse finds them", () => {
  const piece = fc.oneof(
    ...[..."gw1.ax"].map(written),
    fc.constantFrom("\\\\", '\\"', "\\n", "\\u0416", "\\\\u0067", "\u00e9", "\\u00e9"),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const text = `{"a":"${pieces.join("")}"}`;
      assert.equal(holdsText(Buffer.from(text), WORDS), JSON.parse(text).a.includes(WORDS), text);
    }),
    { numRuns: 5_000 },
  );
});

test("a match is found at every position, also across two pieces, and nowhere else", () => {
  const longest = `"${"x".repeat(63)}`;
  const words = new RegExp(`"file_id|${longest}`);
  const around = 65_536;
  for (let at = around - 70; at <= around + 2; at++) {
    for (const word of ['"file_id', longest]) {
      const body = Buffer.alloc(3 * around, "a");
      assert.equal(holdsMatch(body, words), false);
      body.write(word, at);
      assert.equal(holdsMatch(body, words), true, `${word} at ${at}`);
      assert.equal(holdsMatch(body.subarray(0, at + word.length - 1), words), false, "not whole");
    }
  }
  assert.equal(holdsMatch(Buffer.from("\u0122file_id"), words), false, "bytes are compared, not characters");
});
