/**
 * docs/failure-model.md row 68: what a chat server signs is kept until the client has it, so its size and depth are
 * limited. The server gets back only what it signed, and no other member of a message.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeReply } from "../../../../src/convert/chat/reply-decode.ts";
import { mergedDetails, ReturnedParts, returnedOf } from "../../../../src/convert/chat/returned.ts";
import { REPLY_KEPT_CHARS_MAX } from "../../../../src/convert/reply/sink.ts";
import { decodePayloads, IDS, planFor, wholeOf } from "./decoding.ts";

const PLAN = planFor("chat");

function nested(depth: number): string {
  return `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
}

const callWith = (extra: string) =>
  `{"index":0,"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":${extra}}`;
const chunkWith = (delta: string) => `{"choices":[{"index":0,"delta":${delta},"finish_reason":null}]}`;

for (const [what, delta] of [
  ["a call", `{"tool_calls":[${callWith(nested(50_000))}]}`],
  ["a message", `{"content":"x","extra_content":${nested(50_000)}}`],
  ["its reasoning", `{"reasoning_details":[${nested(50_000)}]}`],
] as const) {
  test(`a value nested too deep next to ${what} ends a stream, and is left out of a whole reply`, () => {
    const { decoder } = decodePayloads([chunkWith(delta)], PLAN);
    assert.equal(decoder.fault?.canBeAskedFor, true);
    const message = JSON.parse(delta.replace('"index":0,', ""));
    // Without the helper of the other tests, which serializes the reply.
    const decoded = decodeReply({ choices: [{ message, finish_reason: "stop" }] }, PLAN, IDS);
    assert.ok("reply" in decoded);
    assert.ok(decoded.reply.items.every((item) => item.type !== "reasoning"));
  });
}

test("signatures above the limit on kept text end the stream", () => {
  const piece = "x".repeat(1024 * 1024);
  const payloads = Array.from({ length: REPLY_KEPT_CHARS_MAX / piece.length + 1 }, () =>
    chunkWith(`{"reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"${piece}"}]}`),
  );
  const { decoder } = decodePayloads(payloads, PLAN);
  assert.equal(decoder.fault?.canBeAskedFor, true);
});

test("only members that are known to be signed are sealed, whatever else a server adds", () => {
  const call = {
    id: "c",
    function: { name: "f", arguments: "{}" },
    role: "system",
    __proto__: { x: 1 },
    extra_content: { google: { thought_signature: "s" } },
  };
  const { items } = wholeOf(
    { choices: [{ message: { tool_calls: [call], role: "system" }, finish_reason: "stop" }] },
    PLAN,
  );
  const [sealed] = items;
  assert.ok(sealed?.type === "reasoning");
  const returned = returnedOf(sealed.native);
  assert.deepEqual(returned?.calls, [
    { id: "c", place: 0, members: { extra_content: { google: { thought_signature: "s" } } } },
  ]);
  assert.equal(returned?.message, undefined);
});

const detail = (type: string, index: number | undefined, more: object) => ({
  type: `reasoning.${type}`,
  index,
  ...more,
});
const plain = (details: readonly object[]) => details.map((one) => JSON.parse(JSON.stringify(one)));

test("fragments of details are joined by their index, and those without an index stay separate", () => {
  const merged = mergedDetails([
    detail("text", 0, { text: "a" }),
    detail("text", 1, { text: "c" }),
    detail("text", 0, { text: "b", signature: null }),
    detail("text", 0, { signature: "s" }),
    detail("text", undefined, { text: "x" }),
    detail("text", undefined, { text: "y" }),
  ]);
  assert.deepEqual(plain(merged), [
    { type: "reasoning.text", index: 0, text: "ab", signature: "s" },
    { type: "reasoning.text", index: 1, text: "c" },
    { type: "reasoning.text", text: "x" },
    { type: "reasoning.text", text: "y" },
  ]);
});

// github.com/OpenRouterTeam/ai-sdk-provider/issues/519: streams give each block the index 0.
test("blocks with the same index stay separate if their type, id or signature differs", () => {
  const blocks = [
    detail("summary", 0, { summary: "first", id: "rs_1" }),
    detail("encrypted", 0, { data: "one", id: "rs_1" }),
    detail("encrypted", 0, { data: "two", id: "rs_2" }),
    detail("summary", 0, { summary: "second" }),
    detail("encrypted", 0, { data: "three", id: "rs_3", format: "openai-responses-v1" }),
    detail("encrypted", 0, { data: "four", format: "google-gemini-v1" }),
    detail("text", 0, { text: "signed", signature: "s1" }),
    detail("text", 0, { text: "signed again", signature: "s2" }),
  ];
  assert.deepEqual(mergedDetails(blocks), blocks);
});

test("fragments belong to the last block, even if an earlier block has the same index", () => {
  const merged = mergedDetails([
    detail("summary", 0, { summary: "fi", id: "rs_1" }),
    detail("summary", 0, { summary: "rst" }),
    detail("encrypted", 0, { data: "one", id: "rs_1" }),
    detail("text", 0, { text: "sig" }),
    detail("text", 0, { text: "ned" }),
    detail("text", 0, { signature: "s1" }),
    detail("text", 0, { text: "more" }),
  ]);
  assert.deepEqual(plain(merged), [
    { type: "reasoning.summary", index: 0, summary: "first", id: "rs_1" },
    { type: "reasoning.encrypted", index: 0, data: "one", id: "rs_1" },
    { type: "reasoning.text", index: 0, text: "signed", signature: "s1" },
    { type: "reasoning.text", index: 0, text: "more" },
  ]);
});

test("fragments of encrypted details are joined", () => {
  const merged = mergedDetails([
    detail("encrypted", 0, { data: "op", id: "rs_1" }),
    detail("encrypted", 0, { data: "aque" }),
  ]);
  assert.deepEqual(plain(merged), [{ type: "reasoning.encrypted", index: 0, data: "opaque", id: "rs_1" }]);
});

test("a note that a delta is a thought is not kept, and does not replace a signature", () => {
  const parts = new ReturnedParts({ keep() {}, exceed: assert.fail });
  const note = { extra_content: { google: { thought: true } } };
  parts.seeMessage(note);
  assert.ok(parts.isEmpty);
  const signed = { extra_content: { google: { thought: true, thought_signature: "s" } } };
  parts.seeMessage(signed);
  parts.seeMessage(note);
  assert.deepEqual(parts.take(""), { text: "", details: [], message: signed, calls: [] });
});
