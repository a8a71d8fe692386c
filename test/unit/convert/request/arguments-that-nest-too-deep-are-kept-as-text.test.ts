/** Rule 36: arguments that nest too deep to be written again reach a messages server as the text that they were. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("arguments of some thousand levels go under `_raw_arguments`", () => {
  const depth = 5_000;
  const deep = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  const call = { id: "c", type: "function", function: { name: "look", arguments: deep } };
  const messages = [
    { role: "user", content: "q" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "seen" },
  ];
  const body = upstreamBody("chat", { model: "m", messages }, routeTo("messages"));
  const [, message] = body.messages as { content: { input?: object }[] }[];
  assert.deepEqual(message?.content[0]?.input, { _raw_arguments: deep });
});
