/**
 * docs/translation-rules.md rule 8: a conversation is recognized by prompt_cache_key, metadata.user_id or the client's
 * session, else by a hash of its beginning.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { conversationHash } from "../../../src/convert/conversation.ts";
import type { Protocol } from "../../../src/values/protocol.ts";

const SCOPE = ["account-1", "model-1"];
const hashOf = (protocol: Protocol, json: Record<string, unknown>, session?: string, scope = SCOPE) =>
  conversationHash(protocol, json, session, scope);

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });

const BEGINNINGS: readonly (readonly [Protocol, (...turns: object[]) => Record<string, unknown>])[] = [
  ["chat", (...turns) => ({ messages: [{ role: "system", content: "be kind" }, ...turns] })],
  ["messages", (...turns) => ({ system: [{ type: "text", text: "be kind" }], messages: turns })],
  ["responses", (...turns) => ({ instructions: "be kind", input: turns })],
];

for (const [protocol, body] of BEGINNINGS) {
  test(`${protocol}: later turns keep the hash, and another beginning changes it`, () => {
    const first = hashOf(protocol, body(user("hello")));
    assert.match(first, /^[0-9a-f]{32}$/);
    assert.equal(hashOf(protocol, body(user("hello"), assistant("hi"), user("and now?"))), first);
    assert.notEqual(hashOf(protocol, body(user("good day"), assistant("hi"))), first);
    assert.notEqual(hashOf(protocol, { ...body(user("hello")), instructions: "be brief", system: "be brief" }), first);
  });

  test(`${protocol}: another account or another model gives another hash`, () => {
    const first = hashOf(protocol, body(user("hello")));
    for (const scope of [
      ["account-2", "model-1"],
      ["account-1", "model-2"],
    ]) {
      assert.notEqual(hashOf(protocol, body(user("hello")), undefined, scope), first);
    }
  });
}

test("the client's own name for the conversation takes precedence over its session, and the session over the text", () => {
  const named = hashOf("responses", { prompt_cache_key: "a", input: "hello" }, "session-1");
  assert.equal(hashOf("responses", { prompt_cache_key: "a", input: "other" }, "session-2"), named);
  const byUser = hashOf("messages", { metadata: { user_id: "a" }, messages: [user("hello")] });
  assert.equal(hashOf("messages", { metadata: { user_id: "a" }, messages: [user("other")] }), byUser);
  const bySession = hashOf("chat", { messages: [user("hello")] }, "session-1");
  assert.equal(hashOf("chat", { messages: [user("other")] }, "session-1"), bySession);
  assert.notEqual(hashOf("chat", { messages: [user("hello")] }, "session-2"), bySession);
});

test("a body of an odd shape has a hash, and only part of a first turn of megabytes is hashed", () => {
  for (const json of [{}, { input: 7 }, { messages: [null, 3] }, { metadata: { user_id: 7 }, prompt_cache_key: "" }]) {
    for (const protocol of ["chat", "messages", "responses"] as const) assert.equal(hashOf(protocol, json).length, 32);
  }
  const image = "A".repeat(1_000_000);
  const bodyOf = (end: string) => ({ messages: [user([{ type: "image", data: image + end }])] });
  assert.equal(hashOf("messages", bodyOf("1")), hashOf("messages", bodyOf("2")));
});
