/** The parser reports where it gave up on a bracket or a quote; the message names where it was opened. */
import assert from "node:assert/strict";
import test from "node:test";
import { loadConfig } from "../../../src/config/config.ts";

/** Where a text is reported to be wrong, and the message. */
function faultOf(text: string): string {
  const loaded = loadConfig({ text, env: {} });
  assert.ok("problems" in loaded);
  const [{ line, column, message } = { line: 0, column: 0, message: "" }] = loaded.problems;
  return `${line}:${column} ${/the (?:bracket|quote) that opens here/.exec(message)?.[0] ?? message}`;
}

test("of several open brackets the innermost unclosed one is named", () => {
  for (const [text, place] of [
    ["a: 1\nb: [1, 2\nc: 3\nd: {x: 1}\n", "2:4"],
    ["a: {x: 1,\nb: 2\nc:\n  - 1\n", "1:4"],
    ["a: [1, {b: 2, c: [3, 4}\nd: 1\n", "1:18"],
    ["b: 2\nm: [1, 2", "2:4"],
    ["a:\n  - {x: 1\n  - {y: 2}\nb: 1\n", "2:5"],
    ["a: {x: [1}]\nb: 1", "1:8"],
    ["a: [[1]}\nb: 1", "1:4"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: references of the configuration.
    ["a: [${KEY}, 2\nb: 1\n", "1:4"],
    ["a:\n  b: [[1], [2],\n\n\nc: 1\n", "2:6"],
  ] as const) {
    assert.equal(faultOf(text), `${place} the bracket that opens here`, text);
  }
});

test("an open quote is named where it opens, and a surplus bracket where it is", () => {
  assert.equal(faultOf('a: "x\nb: 1\nc: 2\n'), "1:4 the quote that opens here");
  assert.equal(faultOf("a:\n  b: 'x\nc: 1\n"), "2:6 the quote that opens here");
  const loaded = loadConfig({ text: 'admin_token: "hunter2\nplans: {}\n', env: {} });
  assert.match(JSON.stringify(loaded), /the quote that opens here is not closed.* by line 3/);
  assert.doesNotMatch(JSON.stringify(loaded), /hunter2/, "no secret is printed");
  assert.match(faultOf("a: [x]]\n"), /^1:7 not valid YAML: unexpected text/);
  assert.match(faultOf("a: b: 1\n"), /^1:\d not valid YAML/);
});
