/**
 * docs/errors.md: a refusal names the wrong value, cut to a maximum length, and never a secret or text that a person
 * wrote.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../../src/accept/envelope.ts";
import { answerOf, isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { shownValue } from "../../../../src/values/words/shown.ts";
import { routeTo, translate } from "./translate.ts";

const USER = { role: "user", content: "x" };
const call = (id: string) => ({
  role: "assistant",
  tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }],
});

const TRANSLATED: readonly (readonly [Protocol, object, string])[] = [
  [
    "chat",
    { messages: [USER, { role: "tool", tool_call_id: "call_9", content: "y" }] },
    'No earlier tool call has the id "call_9".',
  ],
  ["chat", { messages: [USER, call("call_8"), USER] }, 'The tool call "call_8" has no result after it.'],
  [
    "chat",
    { messages: [{ role: "wizard", content: "x" }] },
    'The role must be developer, system, user, assistant, tool or function; it is "wizard".',
  ],
  ["chat", { messages: [USER], temperature: 7 }, "temperature must be a number from 0 to 2; it is 7."],
  ["chat", { messages: [{ role: "user", content: [{ type: "hologram" }] }] }, 'it is "hologram".'],
  [
    "messages",
    { messages: [{ role: "wizard", content: "x" }] },
    'The role must be user, assistant or system; it is "wizard".',
  ],
  ["responses", { input: [{ role: "wizard", content: "x" }] }, 'it is "wizard".'],
  ["responses", { input: [{ type: "spell" }] }, 'The type of this item, "spell", is unknown.'],
  [
    "messages",
    { messages: [USER], top_k: 1e308 },
    "top_k must be a whole number from 0 to 9007199254740991; it is 1e+308.",
  ],
  ["chat", { messages: [{ role: "user", content: 5 }] }, "messages[0].content must be a string or an array; it is 5."],
  ["chat", { messages: [USER], stop: 5 }, "stop must be a string or an array; it is 5."],
  ["messages", { messages: [USER], system: 5 }, "system must be a string or an array; it is 5."],
  [
    "responses",
    { input: [USER, { type: "function_call_output", call_id: "c1", output: "y" }] },
    'No earlier tool call has the id "c1".',
  ],
];

for (const [client, body, words] of TRANSLATED) {
  test(`${client}, translated: ${words}`, () => {
    const limit = client === "messages" ? { max_tokens: 100 } : {};
    const made = translate(client, { model: "m", ...limit, ...body }, routeTo(client === "chat" ? "messages" : "chat"));
    assert.ok(isRefusal(made));
    assert.ok(answerOf(made).message.includes(words), answerOf(made).message);
  });
}

const ACCEPTED: readonly (readonly [Protocol, object, string])[] = [
  ["chat", { messages: [USER], max_tokens: 0 }, '"max_tokens" must be a whole number of at least 1; it is 0.'],
  [
    "chat",
    { messages: [USER], max_tokens: "many" },
    '"max_tokens" must be a whole number of at least 1; it is "many".',
  ],
  [
    "chat",
    { messages: [USER], max_tokens: 2 ** 53 },
    '"max_tokens" must be a whole number from 1 to 9007199254740991; it is 9007199254740992.',
  ],
  ["chat", { messages: [USER], n: 129 }, '"n" must be a whole number from 1 to 128; it is 129.'],
  ["chat", { messages: "hello there" }, '"messages" must be of type array; it is a text of 11 characters.'],
  ["responses", { input: "x", stream: "yes" }, '"stream" must be true or false; it is "yes".'],
];

for (const [client, body, words] of ACCEPTED) {
  test(`${client}, not translated: ${words}`, () => {
    const read = readEnvelope(client, Buffer.from(JSON.stringify({ model: "m", ...body })));
    assert.ok(isRefusal(read));
    assert.ok(answerOf(read).message.includes(words), answerOf(read).message);
  });
}

test("secrets, addresses and texts of people are reported by their length", () => {
  for (const secret of [
    `sk-${"a".repeat(20)}`,
    "Bearer abc",
    "x:sk-abc",
    "gw1.abc",
    "eyJhbGciOi",
    "https://u:p@h",
    "data:image/png;base64,AA",
    "what is my diagnosis",
  ]) {
    assert.equal(shownValue(secret), `a text of ${secret.length} characters`);
  }
  assert.equal(shownValue(" "), "a text of 1 character");
  assert.equal(shownValue("task-1"), '"task-1"');
  assert.equal(shownValue("a".repeat(200)), `"${"a".repeat(64)}…"`);
  assert.equal(shownValue("a\u202eb"), '"a\\u202eb"');
  assert.deepEqual([[], {}, null, undefined, 1.5, ""].map(shownValue), [
    "an array",
    "an object",
    "null",
    "nothing",
    "1.5",
    "an empty string",
  ]);
});
