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

test("the client's limit is sent, at most the route's maximum", () => {
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

test("without a limit messages, which requires one, gets the default, and the others get none", () => {
  assert.equal(sentLimit("chat", "messages", undefined), 8192);
  assert.equal(sentLimit("responses", "messages", undefined), 8192);
  assert.equal(sentLimit("responses", "chat", undefined), undefined);
  assert.equal(sentLimit("chat", "responses", undefined), undefined);
});

test("a limit that admission has lowered replaces the client's", () => {
  assert.equal(sentLimit("chat", "messages", 500, 100), 100);
  assert.equal(sentLimit("responses", "chat", undefined, 100), 100);
  assert.equal(sentLimit("messages", "responses", 500, 100), 100);
});

test("rule 22: the limit is never below the minimum of responses", () => {
  assert.equal(sentLimit("messages", "responses", 1), 16);
  assert.equal(sentLimit("responses", "chat", 5), 5);
});

test("a chat server gets the newer member if its route says so", () => {
  assert.equal(sentLimit("messages", "chat", 500, undefined, { maxTokensField: "max_completion_tokens" }), 500);
});

test("if a chat client sends both members, the newer one is used", () => {
  const body = { messages: [{ role: "user", content: "hi" }], max_tokens: 5, max_completion_tokens: 7 };
  assert.equal(upstreamBody("chat", body, routeTo("messages")).max_tokens, 7);
});
