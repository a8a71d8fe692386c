/** docs/translation-rules.md rule 22: the output limit that goes upstream. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { routeTo, upstreamBody } from "./translate.ts";

const MEMBER = { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" } as const;

function sentLimit(
  from: Protocol,
  to: Protocol,
  wanted: number | undefined,
  permitted: number | undefined = undefined,
  able: Partial<Capabilities> = {},
): unknown {
  const conversation = from === "responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
  const body = { ...conversation, [MEMBER[from]]: wanted };
  const sent = upstreamBody(from, body, routeTo(to, able), { outputLimit: permitted, strict: false });
  return sent[able.maxTokensField ?? MEMBER[to]];
}

test("the client's own, clamped to the route's", () => {
  for (const [from, to] of [
    ["chat", "messages"],
    ["messages", "chat"],
    ["responses", "chat"],
    ["chat", "responses"],
  ] as const) {
    assert.equal(sentLimit(from, to, 500), 500);
    assert.equal(sentLimit(from, to, 1_000_000), 32_000);
  }
});

test("none: the default for messages, which requires one; none for the others", () => {
  assert.equal(sentLimit("chat", "messages", undefined), 8192);
  assert.equal(sentLimit("responses", "messages", undefined), 8192);
  assert.equal(sentLimit("responses", "chat", undefined), undefined);
  assert.equal(sentLimit("chat", "responses", undefined), undefined);
});

test("what admission lowered it to goes before the client's own", () => {
  assert.equal(sentLimit("chat", "messages", 500, 100), 100);
  assert.equal(sentLimit("responses", "chat", undefined, 100), 100);
  assert.equal(sentLimit("messages", "responses", 500, 100), 100);
});

test("rule 22: never below the floor of responses", () => {
  assert.equal(sentLimit("messages", "responses", 1), 16);
  assert.equal(sentLimit("responses", "chat", 5), 5);
});

test("the newer member where the chat server wants it", () => {
  assert.equal(sentLimit("messages", "chat", 500, undefined, { maxTokensField: "max_completion_tokens" }), 500);
});

test("the newer of chat's two members wins", () => {
  const body = { messages: [{ role: "user", content: "hi" }], max_tokens: 5, max_completion_tokens: 7 };
  assert.equal(upstreamBody("chat", body, routeTo("messages")).max_tokens, 7);
});
