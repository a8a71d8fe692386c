/**
 * ARCHITECTURE.md promise 10: a body with a value of the wrong type in place of a string is read or refused, and never
 * causes an exception. `String` throws for an object with a member `toString` that is not a function.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";

const ODD = { toString: 1, valueOf: 1 };
const TURN = [{ role: "user", content: "hi" }];

function read(protocol: Protocol, more: object) {
  const conversation = protocol === "responses" ? { input: "hi" } : { messages: TURN, max_tokens: 9 };
  return readEnvelope(protocol, Buffer.from(JSON.stringify({ model: "m", ...conversation, ...more })));
}

test("a context edit whose type is not a string counts as a compaction", () => {
  for (const [protocol, managed] of [
    ["responses", [{ type: ODD }]],
    ["messages", { edits: [{ type: [ODD] }] }],
  ] as const) {
    const found = read(protocol, { context_management: managed });
    assert.ok(!isRefusal(found));
    assert.equal(found.envelope.compacts, true);
  }
});

test("a media type that is not a string is ignored", () => {
  const source = { type: "base64", media_type: ODD, data: "AAAA" };
  for (const type of ["image", "document"])
    assert.ok(!isRefusal(read("messages", { messages: [{ role: "user", content: [{ type, source }] }] })));
});

test("a list in place of an object with members that affect the price is refused", () => {
  for (const [protocol, name, list] of [
    ["chat", "reasoning", [{ mode: "pro" }]],
    ["responses", "reasoning", [{ mode: "pro" }]],
    ["chat", "thinking", [{ budget_tokens: 999_999 }]],
    ["chat", "chat_template_kwargs", [{ thinking_budget: 999_999 }]],
    ["responses", "prompt_cache_options", [[{ comparison_response_id: "r" }]]],
    ["chat", "tool_choice", [{ type: "web_search" }]],
    ["messages", "tool_choice", [{ type: "web_search" }]],
  ] as const) {
    const found = read(protocol, { [name]: list });
    assert.deepEqual(isRefusal(found) && [found.cause, found.facts.param], ["wrong_type", name]);
  }
});

test("an empty list is accepted as an empty object, as PHP writes it", () => {
  for (const name of ["reasoning", "thinking", "chat_template_kwargs", "prompt_cache_options", "tool_choice"])
    assert.ok(!isRefusal(read("chat", { [name]: [] })), name);
});

test("the number of unknown names is limited in a conversation, too", () => {
  const content = (count: number) => [
    { role: "user", content: "hi", ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, 1])) },
  ];
  assert.ok(!isRefusal(read("chat", { messages: content(10_000) })));
  const repeated = Array.from({ length: 30_000 }, () => ({ role: "user", content: "hi", mine: 1 }));
  assert.ok(!isRefusal(read("chat", { messages: repeated })), "a repeated name counts once");
  const found = read("chat", { messages: content(10_001) });
  assert.equal(isRefusal(found) && found.cause, "body_too_large");
});
