/** The header says how many names it leaves out; with exactly as many names as it has room for, it leaves out none. */
import assert from "node:assert/strict";
import test from "node:test";
import { translationHeader } from "../../../../src/convert/rules/losses.ts";

test("twenty names are listed without a count, and of twenty-one the last is counted", () => {
  const names = Array.from({ length: 21 }, (_, at) => `n${at}`);
  const twenty = names.slice(0, 20);
  assert.equal(translationHeader(twenty), `lossy; dropped=${twenty.join(",")}`);
  assert.equal(translationHeader(names), `lossy; dropped=${twenty.join(",")},+1`);
});
