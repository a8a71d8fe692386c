/**
 * docs/translation-rules.md rules 15, 16 and 19: blank text, cache breakpoints and consecutive messages of one role on
 * the way to messages.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const mark = { prompt_cache_breakpoint: { mode: "explicit" } };
const text = (value: string, extra: object = {}) => ({ type: "text", text: value, ...extra });
const cached = (value: string) => text(value, { cache_control: { type: "ephemeral" } });

function messagesOf(messages: readonly object[]): unknown {
  return upstreamBody("chat", { messages }, routeTo("messages")).messages;
}

test("rule 15: blank parts are left out, and their breakpoint moves to the part before", () => {
  const user = { role: "user", content: [text("a"), text(" \n", mark), text("b")] };
  assert.deepEqual(messagesOf([user]), [{ role: "user", content: [cached("a"), text("b")] }]);
});

test("rule 15: an assistant message of blank text without calls is left out", () => {
  const user = { role: "user", content: "q" };
  assert.deepEqual(messagesOf([user, { role: "assistant", content: " " }, { role: "user", content: "r" }]), [
    { role: "user", content: [text("q"), text("r")] },
  ]);
});

test("rule 15: a blank user turn after results adds no text", () => {
  const messages = [
    { role: "user", content: "q" },
    { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f" } }] },
    { role: "tool", tool_call_id: "a", content: "" },
    { role: "user", content: "" },
  ];
  const sent = messagesOf(messages) as { content: unknown }[];
  assert.deepEqual(sent[2]?.content, [{ type: "tool_result", tool_use_id: "a", content: "" }]);
});

test("rule 16: consecutive messages of one role become one message", () => {
  const sent = messagesOf([
    { role: "user", content: "a" },
    { role: "user", content: [text("b"), text("c")] },
    { role: "assistant", content: "x" },
    { role: "assistant", content: "y" },
    { role: "user", content: "z" },
  ]);
  assert.deepEqual(sent, [
    { role: "user", content: [text("a"), text("b"), text("c")] },
    { role: "assistant", content: [text("x"), text("y")] },
    { role: "user", content: [text("z")] },
  ]);
});

test("rule 19: of more than four breakpoints the last four stay", () => {
  const system = { role: "system", content: [text("s", mark)] };
  const users = ["a", "b", "c", "d"].map((value) => ({ role: "user", content: [text(value, mark)] }));
  const sent = upstreamBody("chat", { messages: [system, ...users] }, routeTo("messages"));
  assert.deepEqual(sent.system, [text("s")]);
  assert.deepEqual(sent.messages, [{ role: "user", content: ["a", "b", "c", "d"].map(cached) }]);
});

test("rule 14: refusals in the history become text", () => {
  const user = { role: "user", content: "q" };
  const sent = messagesOf([user, { role: "assistant", content: null, refusal: "no" }, user]) as { content: unknown }[];
  assert.deepEqual(sent[1]?.content, [text("no")]);
});

test("rule 15: a byte order mark alone counts as text", () => {
  assert.deepEqual(messagesOf([{ role: "user", content: "\ufeff" }]), [{ role: "user", content: [text("\ufeff")] }]);
  const mixed = { role: "user", content: [text("a"), text(" \ufeff\n"), text("\u00a0\u3000")] };
  assert.deepEqual(messagesOf([mixed]), [{ role: "user", content: [text("a"), text(" \ufeff\n")] }]);
});
