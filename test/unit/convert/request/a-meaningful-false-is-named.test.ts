/**
 * docs/translation-rules.md rule 3: where `false` asks for something that another protocol cannot do, it is named as lost;
 * where it asks for what happens anyway, nothing is said.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { routeTo, translate } from "./translate.ts";

function droppedOf(client: Protocol, to: Protocol, members: Readonly<Record<string, unknown>>): readonly string[] {
  const body = { max_tokens: 9, messages: [{ role: "user", content: "hi" }], ...members };
  const encoded = translate(client, body, routeTo(to));
  assert.ok(!isRefusal(encoded));
  return encoded.dropped;
}

const OF_CHAT = [
  "include_reasoning",
  "separate_reasoning",
  "stream_reasoning",
  "skip_special_tokens",
  "spaces_between_special_tokens",
  "add_generation_prompt",
  "add_special_tokens",
  "do_sample",
  "cache_prompt",
];

for (const name of OF_CHAT) {
  test(`${name}: false is lost on the way from chat to messages and responses`, () => {
    assert.deepEqual(droppedOf("chat", "messages", { [name]: false }), [name]);
    assert.deepEqual(droppedOf("chat", "responses", { [name]: false }), [name]);
  });
}

test("a false that asks for what happens anyway is not named", () => {
  assert.deepEqual(droppedOf("chat", "messages", { store: false, parallel_tool_calls: null, logprobs: false }), []);
});
