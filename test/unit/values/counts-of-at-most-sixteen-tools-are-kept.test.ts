/** An upstream that counts calls of any number of tools cannot make a charge too large to be stored. */
import assert from "node:assert/strict";
import test from "node:test";
import { mergedCalls } from "../../../src/values/tokens/tool-calls.ts";

const toolsFrom = (first: number, last: number) =>
  Object.fromEntries(Array.from({ length: last - first + 1 }, (_, i) => [`tool_${first + i}`, 1]));

test("sixteen tools are kept, and of further ones none", () => {
  assert.equal(Object.keys(mergedCalls({}, toolsFrom(1, 16))).length, 16);
  assert.deepEqual(mergedCalls({}, toolsFrom(1, 40)), toolsFrom(1, 16));
  assert.deepEqual(mergedCalls(toolsFrom(1, 10), toolsFrom(11, 40)), toolsFrom(1, 16));
});

test("a tool that is among them grows though sixteen are there", () => {
  assert.deepEqual(mergedCalls(toolsFrom(1, 16), { tool_99: 7, tool_16: 5 }), { ...toolsFrom(1, 16), tool_16: 5 });
});
