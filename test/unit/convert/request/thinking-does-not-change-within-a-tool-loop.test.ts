/**
 * Rule 27 and docs/prompt-caches.md: a tool loop is one turn with one setting of thinking, because another setting
 * invalidates the cache of its messages. A server with a budget also refuses thinking in a loop that began without it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { sealReasoning } from "../../../../src/convert/rules/envelope.ts";
import { CONTEXT, routeTo, UPSTREAM_MODEL, upstreamBody } from "./translate.ts";

const route = routeTo("messages", { thinking: "budget" });
const BLOCK = { type: "thinking", thinking: "Look first.", signature: "sig" };
const ORIGIN = { protocol: "messages" as const, upstreamModel: UPSTREAM_MODEL, account: undefined };
const REASONING = {
  type: "reasoning",
  summary: [{ type: "summary_text", text: "Look first." }],
  encrypted_content: sealReasoning([BLOCK], ORIGIN, CONTEXT),
};
const USER = { role: "user", content: "go" };
const call = (id: string) => ({ type: "function_call", call_id: id, name: "look", arguments: "{}" });
const result = (id: string) => ({ type: "function_call_output", call_id: id, output: "seen" });

/** Whether thinking is requested for this conversation. */
function thinks(...input: readonly object[]): boolean {
  const tools = [{ type: "function", name: "look", parameters: { type: "object" }, strict: false }];
  const include = ["reasoning.encrypted_content"];
  const body = { model: "m", input, tools, include, reasoning: { effort: "high" }, max_output_tokens: 20_000 };
  return upstreamBody("responses", body, route).thinking !== undefined;
}

test("a loop that began with thinking keeps it, even after calls without reasoning", () => {
  const loop = [USER, REASONING, call("a"), result("a")];
  assert.equal(thinks(USER), true);
  assert.equal(thinks(...loop), true);
  assert.equal(thinks(...loop, call("b"), result("b")), true);
  assert.equal(thinks(...loop, call("b"), result("b"), call("c"), result("c")), true);
});

test("a loop that began without thinking continues without it, whatever reasoning comes later", () => {
  const loop = [USER, call("a"), result("a")];
  assert.equal(thinks(...loop), false);
  assert.equal(thinks(...loop, REASONING, call("b"), result("b")), false);
  assert.equal(thinks(...loop, call("b"), result("b")), false);
});

test("each task is decided separately", () => {
  const done = { role: "assistant", content: [{ type: "output_text", text: "done" }] };
  assert.equal(thinks(USER, call("a"), result("a"), done, USER), true);
  assert.equal(thinks(USER, call("a"), result("a"), done, USER, REASONING, call("b"), result("b")), true);
  assert.equal(thinks(USER, REASONING, call("a"), result("a"), done, USER, call("b"), result("b")), false);
});

test("a user message within a loop begins another loop", () => {
  assert.equal(thinks(USER, REASONING, call("a"), result("a"), USER, call("b"), result("b")), false);
});
