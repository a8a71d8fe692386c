import assert from "node:assert/strict";
import test from "node:test";
import { type ProtocolName, post, withSimulator } from "./clients.ts";

const toolCalls = [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }];
const called = { role: "assistant", content: null, tool_calls: toolCalls };
const user = { role: "user", content: "hi" };
const use = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: {} }] };
const system = { role: "system", content: "mind" };
const thought = { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "s" }] };
const result = { type: "tool_result", tool_use_id: "t1", content: "ok" };
const functionCall = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
const functionOutput = { type: "function_call_output", call_id: "c1", output: "ok" };

const REFUSED: readonly (readonly [ProtocolName, object, RegExp])[] = [
  ["chat", { top_k: 1 }, /top_k: unknown/],
  ["chat", { stream_options: { include_usage: true } }, /stream_options/],
  ["chat", { messages: [user, called] }, /without an answer: c1/],
  ["chat", { messages: [user, called, user] }, /without an answer: c1/],
  ["chat", { messages: [{ role: "tool", tool_call_id: "c1", content: "x" }] }, /must follow its tool call/],
  ["messages", { stop: "x" }, /stop: unknown/],
  ["messages", { thinking: { type: "enabled", budget_tokens: 10 } }, /at least 1024/],
  ["messages", { max_tokens: 1024, thinking: { type: "enabled", budget_tokens: 1024 } }, /less than max_tokens/],
  ["messages", { messages: [user, use, user] }, /without a tool_result directly after: t1/],
  ["messages", { messages: [{ role: "user", content: [result] }] }, /without a tool_use directly before: t1/],
  [
    "messages",
    { messages: [user, use, { role: "user", content: [{ type: "text", text: "a" }, result] }] },
    /before all/,
  ],
  ["messages", { messages: [{ role: "user", content: [{ type: "text", text: " " }] }] }, /blank/],
  ["messages", { messages: [{ role: "tool", content: "x" }] }, /unknown role/],
  ["messages", { messages: [system, user] }, /role 'system' must follow a 'user' message/],
  ["messages", { messages: [user, system, user] }, /role 'system' must precede an 'assistant' message/],
  ["messages", { messages: [user, thought] }, /the final block in an assistant message cannot be thinking/],
  ["responses", { stop: "x" }, /stop: unknown/],
  ["responses", { input: [functionCall] }, /no tool output found for c1/],
  ["responses", { input: [functionOutput] }, /no tool call found for c1/],
  ["responses", { input: [{ ...functionCall, id: "call_1" }, functionOutput] }, /begins with 'fc'/],
];

for (const [protocol, fields, reason] of REFUSED) {
  test(`${protocol}: a strict server answers 400 with ${reason.source}, and another one 200`, async () => {
    await withSimulator(
      async (simulator) => {
        const response = await post(simulator, protocol, fields);
        assert.equal(response.status, 400);
        assert.match(((await response.json()) as { error: { message: string } }).error.message, reason);
      },
      { strict: true },
    );
    await withSimulator(async (simulator) => {
      const response = await post(simulator, protocol, fields);
      assert.equal(response.status, 200);
      await response.body?.cancel();
    });
  });
}

test("well-formed tool turns are accepted", () =>
  withSimulator(
    async (simulator) => {
      const answers = [{ role: "tool", tool_call_id: "c1", content: "ok" }, user];
      const accepted: readonly (readonly [ProtocolName, object])[] = [
        ["chat", { messages: [user, called, ...answers], n: 1 }],
        ["messages", { messages: [user, use, { role: "user", content: [result, { type: "text", text: "and?" }] }] }],
        ["messages", { messages: [user, system, thought, user, system] }],
        ["responses", { input: [{ role: "user", content: "hi" }, { ...functionCall, id: "fc_1" }, functionOutput] }],
      ];
      for (const [protocol, fields] of accepted) {
        const response = await post(simulator, protocol, fields);
        assert.equal(response.status, 200, await response.text());
      }
    },
    { strict: true },
  ));
