/** Rule 34: a call whose namespace is empty has the plain name, also if its tool is not offered any more. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("a call with an empty namespace keeps its name, with and without its tool", () => {
  const input = [
    { role: "user", content: "q" },
    { type: "function_call", call_id: "c", name: "look", namespace: "", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: "seen" },
  ];
  const tools = [{ type: "function", name: "look", parameters: { type: "object" } }];
  for (const offered of [tools, []]) {
    const body = upstreamBody("responses", { model: "m", input, tools: offered }, routeTo("chat"));
    const [, message] = body.messages as { tool_calls: { function: object }[] }[];
    assert.deepEqual(message?.tool_calls[0]?.function, { name: "look", arguments: "{}" });
  }
});
