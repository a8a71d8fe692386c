/**
 * A responses server that counts the calls of its tools (xAI) counts those that succeeded; its output items are all
 * calls (docs/usage-forms.md, `xai-responses`). A tool that it counts as 0 calls is not charged, whole or streamed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { HostedCalls, readUsage } from "../../../../src/convert/responses/usage.ts";

const FAILED = { type: "code_interpreter_call", id: "ci_1", status: "failed", code: "1/0" };
const SEARCH = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } };
const TOKENS = { input_tokens: 10, output_tokens: 5 };
const USAGE = { ...TOKENS, server_side_tool_usage_details: { web_search_calls: 1, code_interpreter_calls: 0 } };

test("whole: the server's count of 0 applies, and not its item", () => {
  const { toolCalls } = readUsage({ usage: USAGE, output: [SEARCH, FAILED] }) ?? assert.fail();
  assert.deepEqual(toolCalls, { web_search: 1 });
});

test("streamed: the same for calls that were seen among the stream's items", () => {
  const seen = new HostedCalls();
  for (const item of [SEARCH, FAILED]) {
    seen.begin(item);
    seen.see(item);
  }
  const { toolCalls } = readUsage({ usage: USAGE, output: [] }, seen) ?? assert.fail();
  assert.deepEqual(toolCalls, { web_search: 1 });
});

test("a tool that the server does not count is counted by its items", () => {
  const usage = { ...TOKENS, server_side_tool_usage_details: { web_search_calls: 1 } };
  const { toolCalls } = readUsage({ usage, output: [SEARCH, FAILED] }) ?? assert.fail();
  assert.deepEqual(toolCalls, { web_search: 1, code_interpreter: 1 });
});
