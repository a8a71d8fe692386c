/** docs/failure-model.md rows 58 and 77: a wrong value is shown to who sent it, but never one that may be a credential. */
import assert from "node:assert/strict";
import test from "node:test";
import { quoted, shownValue } from "../../../src/values/words/shown.ts";

const BEGINNINGS = [
  "sk-",
  "gw1.",
  "Bearer",
  "eyJ",
  "AKIA",
  "ghp_",
  "gho_",
  "ghu_",
  "ghs_",
  "xoxa-",
  "xoxb-",
  "xoxp-",
  "https://",
  "data:",
  "-----",
];

for (const beginning of BEGINNINGS) {
  test(`what begins with ${beginning} is shown by its length alone, wherever it stands`, () => {
    for (const value of [`${beginning}0123456789`, `key=${beginning}0123456789`, `"${beginning.toUpperCase()}01"`]) {
      assert.equal(shownValue(value), `a text of ${value.length} characters`);
    }
  });
}

test("a harmless word is shown, at most 64 characters of it", () => {
  assert.equal(shownValue("task-force"), '"task-force"');
  assert.equal(shownValue("a".repeat(64)), `"${"a".repeat(64)}"`);
  assert.equal(shownValue("a".repeat(65)), `"${"a".repeat(64)}…"`);
});

test("characters that turn, hide or break text are escaped, each of them", () => {
  const ranges = [
    [0x00, 0x1f],
    [0x7f, 0x9f],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2066, 0x2069],
    [0xfeff, 0xfeff],
  ] as const;
  for (const [first, last] of ranges) {
    for (let code = first; code <= last; code++) {
      const escaped = `\\u${code.toString(16).padStart(4, "0")}`;
      assert.equal(quoted(`a${String.fromCharCode(code)}b`), `a${escaped}b`);
    }
  }
  assert.equal(quoted("half a pair: \ud83d"), "half a pair: \\ud83d");
  assert.equal(quoted("a pair: 😀, and é"), "a pair: 😀, and é");
});
