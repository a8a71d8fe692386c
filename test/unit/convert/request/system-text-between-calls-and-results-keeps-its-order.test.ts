/**
 * Rule 10: a messages server takes a system message only after a user message, and only last or before an assistant
 * message. Other system text is a reminder in a user message, with its breakpoint.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const CALL = { id: "c1", type: "function", function: { name: "look", arguments: "{}" } };
const sent = (messages: readonly object[], midSystem: boolean) =>
  upstreamBody("chat", { model: "m", messages }, routeTo("messages", { midSystem, promptCache: "client" }));

test("of two system messages around a result, only the last one is sent as a system message", () => {
  const messages = [
    { role: "user", content: "q" },
    { role: "assistant", content: null, tool_calls: [CALL] },
    { role: "system", content: "first" },
    { role: "tool", tool_call_id: "c1", content: "seen" },
    { role: "system", content: "second" },
  ];
  const written = sent(messages, true).messages as { role: string; content: unknown }[];
  assert.deepEqual(
    written.map(({ role }) => role),
    ["user", "assistant", "user", "system"],
  );
  assert.match(JSON.stringify(written[2]), /system-reminder.*first/);
  assert.deepEqual(written[3]?.content, [{ type: "text", text: "second" }]);
});

test("a reminder keeps the breakpoint of its system text", () => {
  const marked = { type: "text", text: "mind", cache_control: { type: "ephemeral" } };
  const messages = [
    { role: "user", content: "q" },
    { role: "system", content: [marked] },
  ];
  const [message] = sent(messages, false).messages as { content: { cache_control?: object }[] }[];
  assert.deepEqual(
    message?.content.map((block) => block.cache_control),
    [undefined, { type: "ephemeral" }],
  );
});
