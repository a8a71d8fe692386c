/** Rule 35: an id of a call may be used again. Each output is written in the form that belongs to the last call before it. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("the output of a function is not that of a freeform tool that had the same id before", () => {
  const custom = { id: "c", type: "custom", custom: { name: "patch", input: "text" } };
  const called = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
  const step = (call: object) => [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "seen" },
  ];
  const messages = [{ role: "user", content: "q" }, ...step(custom), ...step(called)];
  const body = upstreamBody("chat", { model: "m", messages }, routeTo("responses", { customTools: true }));
  assert.deepEqual(
    (body.input as { type: string }[]).map(({ type }) => type),
    ["message", "custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output"],
  );
});
