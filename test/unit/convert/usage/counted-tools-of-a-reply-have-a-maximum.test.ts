/** However many names of tools an upstream counts over all events, the charge stays small enough for the journal. */
import assert from "node:assert/strict";
import test from "node:test";
import { MessageUsage } from "../../../../src/convert/messages/usage.ts";
import { mergedCalls } from "../../../../src/values/tokens/tool-calls.ts";

test("sixteen tools are kept over all events, each with its largest count", () => {
  const usage = new MessageUsage();
  for (let event = 0; event < 60; event++) {
    const names = Array.from({ length: 16 }, (_, at) => [`tool_${event % 20}_${at}_requests`, event + 1]);
    usage.count({ input_tokens: 10, output_tokens: 5, server_tool_use: Object.fromEntries(names) });
  }
  const { toolCalls } = usage.usage ?? assert.fail();
  assert.deepEqual(toolCalls, Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`tool_0_${at}`, 41])));
});

test("a tool whose name every object has is counted like any other", () => {
  assert.deepEqual({ ...mergedCalls({}, { constructor: 2 }) }, { constructor: 2 });
  assert.deepEqual({ ...mergedCalls({ constructor: 3 }, { constructor: 2 }) }, { constructor: 3 });
});
