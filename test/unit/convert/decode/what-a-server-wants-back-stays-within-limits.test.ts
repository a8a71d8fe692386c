/**
 * docs/failure-model.md row 68: what a chat server signs is kept until the client has it, so a hostile one is bounded in how
 * much and how deep; and it gets back what it signed, never another member of a message.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeReply } from "../../../../src/convert/chat/reply-decode.ts";
import { mergedDetails, returnedOf } from "../../../../src/convert/chat/returned.ts";
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
  test(`what is nested beyond reason beside ${what} ends a stream, and is left out of a whole reply`, () => {
    const { decoder } = decodePayloads([chunkWith(delta)], PLAN);
    assert.equal(decoder.fault?.canBeAskedFor, true);
    const message = JSON.parse(delta.replace('"index":0,', ""));
    // Not by the helper of the others, which writes what it is given.
    const decoded = decodeReply({ choices: [{ message, finish_reason: "stop" }] }, PLAN, IDS);
    assert.ok("reply" in decoded);
    assert.ok(decoded.reply.items.every((item) => item.type !== "reasoning"));
  });
}

test("a flood of signatures ends the stream", () => {
  const piece = "x".repeat(1024 * 1024);
  const payloads = Array.from({ length: REPLY_KEPT_CHARS_MAX / piece.length + 1 }, () =>
    chunkWith(`{"reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"${piece}"}]}`),
  );
  const { decoder } = decodePayloads(payloads, PLAN);
  assert.equal(decoder.fault?.canBeAskedFor, true);
});

test("only what is known to be signed is sealed, under whatever name a server hides more", () => {
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

test("fragments of details are joined by their index, and others stay apart", () => {
  const text = (index: number | undefined, piece: string, more: object = {}) => ({
    type: "reasoning.text",
    index,
    text: piece,
    ...more,
  });
  assert.deepEqual(
    mergedDetails([
      text(0, "a"),
      { type: "reasoning.encrypted", index: 0, data: "d" },
      text(0, "b", { signature: null }),
      text(1, "c"),
      { type: "reasoning.text", index: 0, signature: "s" },
      text(undefined, "x"),
      text(undefined, "y"),
    ]).map((detail) => JSON.parse(JSON.stringify(detail))),
    [
      { type: "reasoning.text", index: 0, text: "ab", signature: "s" },
      { type: "reasoning.encrypted", index: 0, data: "d" },
      { type: "reasoning.text", index: 1, text: "c" },
      { type: "reasoning.text", text: "x" },
      { type: "reasoning.text", text: "y" },
    ],
  );
});
