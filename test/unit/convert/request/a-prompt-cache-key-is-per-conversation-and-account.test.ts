/** Rule 19: the prompt_cache_key that messages clients get on servers that find cached prompts by a key. */
import assert from "node:assert/strict";
import test from "node:test";
import { encodeRequest } from "../../../../src/convert/responses/request.ts";
import { contextOf } from "../../../../src/request/context.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { systemClock } from "../../../../src/values/time.ts";
import { type Body, PERMITTED, routeTo, TRANSLATORS, upstreamBody } from "./translate.ts";

const FIRST = { role: "user", content: "Paint the roof, and tell nobody that the attic is open." };
const SYSTEM = "You look at roofs.";
const body = (more: Body = {}): Body => ({ model: "m", max_tokens: 100, system: SYSTEM, messages: [FIRST], ...more });
const GROWN = [FIRST, { role: "assistant", content: "Which colour?" }, { role: "user", content: "Red." }];

const keyOf = (json: Body, protocol: Protocol = "responses") =>
  upstreamBody("messages", json, routeTo(protocol)).prompt_cache_key;

/** The key that an account gets with a secret of the gateway. */
function keyFor(account: string, secret: string, json: Body = body()): string {
  const sealing = createSealing([new Secret(secret)]);
  const context = contextOf({ clock: systemClock, sealing }, { tag: account as AccountTag });
  const hub = TRANSLATORS.messages.decodeRequest(json, { model: "m", stream: false });
  assert.ok(!isRefusal(hub));
  const encoded = encodeRequest(hub, routeTo("responses"), PERMITTED, context);
  assert.ok(!isRefusal(encoded));
  return JSON.parse(Buffer.from(encoded.body).toString()).prompt_cache_key;
}

test("the key stays the same while the conversation grows, and another conversation has another key", () => {
  assert.equal(keyOf(body({ messages: GROWN })), keyOf(body()));
  assert.equal(keyOf(body({ max_tokens: 200, temperature: 0.5, stop_sequences: ["x"] })), keyOf(body()));
  assert.notEqual(keyOf(body({ messages: [{ role: "user", content: "Paint the door." }] })), keyOf(body()));
  assert.notEqual(keyOf(body({ system: "You look at doors." })), keyOf(body()));
});

test("a conversation that the client has named gets a key by that name", () => {
  const named = (user_id: string, more: Body = {}) => keyOf(body({ metadata: { user_id }, ...more }));
  assert.equal(named("session-1"), named("session-1", { system: "Another agent of this session." }));
  assert.notEqual(named("session-1"), named("session-2"));
  assert.notEqual(named("session-1"), keyOf(body()));
  assert.equal(named(""), keyOf(body()), "an empty name counts as missing");
});

test("two accounts never share a key, and another secret gives another key", () => {
  assert.equal(keyFor("tag0000001", "one"), keyFor("tag0000001", "one"));
  assert.notEqual(keyFor("tag0000001", "one"), keyFor("tag0000002", "one"));
  assert.notEqual(keyFor("tag0000001", "one"), keyFor("tag0000001", "two"));
});

test("no account can get another account's key by naming it in the conversation", () => {
  // A digest of account and text without a separator would be the same for both.
  const names = ["a", "a:", "a:prompt-cache", "a\n"];
  const keys = names.flatMap((tag) =>
    ["x", ":x", "\nx"].map((user_id) => keyFor(tag, "one", body({ metadata: { user_id } }))),
  );
  assert.equal(new Set(keys).size, keys.length);
});

test("the key contains nothing of the prompt, fits every server, and is left out if the operator says so", () => {
  const key = String(keyOf(body()));
  assert.match(key, /^[A-Za-z0-9_-]{32}$/);
  assert.equal(
    upstreamBody("messages", body(), routeTo("responses", { promptCache: "client" })).prompt_cache_key,
    undefined,
  );
});

test("chat servers get a key if they know the member, and clients with such a member keep their own value", () => {
  assert.equal(keyOf(body(), "chat"), undefined);
  assert.match(
    String(upstreamBody("messages", body(), routeTo("chat", { openaiNative: true })).prompt_cache_key),
    /^.{32}$/,
  );
  const chat = { model: "m", messages: [FIRST] };
  assert.equal(upstreamBody("chat", chat, routeTo("responses")).prompt_cache_key, undefined);
  assert.equal(
    upstreamBody("chat", { ...chat, prompt_cache_key: "mine" }, routeTo("responses")).prompt_cache_key,
    "mine",
  );
});
