/** docs/failure-model.md row 68: one event of 4 MiB has room for ten times as many blocks as a reply may have. */
import assert from "node:assert/strict";
import test from "node:test";
import { REPLY_BLOCKS_MAX } from "../../../../src/convert/reply/sink.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { decodePayloads, planFor } from "./decoding.ts";

/** Events of one block at the most: its beginning, its text and its end. */
const EVENTS_PER_BLOCK = 3;
/** The reply's own events. */
const OTHER_EVENTS = 16;

function list<T>(one: (n: number) => T): readonly T[] {
  return Array.from({ length: 4 * REPLY_BLOCKS_MAX }, (_, n) => one(n));
}

const call = (index: number) => ({ index, id: `c${index}`, function: { name: "f", arguments: "{}" } });
const chunk = (delta: object) => ({ choices: [{ delta }] });
const completed = (output: readonly object[]) => ({
  type: "response.completed",
  response: { status: "completed", output },
});
const message = (parts: readonly object[]) => ({ type: "message", id: "m", content: parts });
const IMAGE = { image_url: { url: "data:image/png;base64,AAAA" } };

const EVENTS: readonly (readonly [string, Protocol, object])[] = [
  ["calls of a delta", "chat", chunk({ tool_calls: list(call) })],
  ["images of a delta", "chat", chunk({ images: list(() => IMAGE) })],
  ["deltas of one choice", "chat", { choices: list(() => ({ delta: { content: "x", reasoning: "y" } })) }],
  [
    "calls of a response",
    "responses",
    completed(list((n) => ({ type: "function_call", id: `f${n}`, call_id: `c${n}`, name: "f", arguments: "{}" }))),
  ],
  [
    "items of a response",
    "responses",
    completed(list((n) => ({ ...message([{ type: "output_text", text: "x" }]), id: `m${n}` }))),
  ],
  ["parts of a message", "responses", completed([message(list(() => ({ type: "output_text", text: "x" })))])],
];

for (const [name, protocol, payload] of EVENTS) {
  test(`${protocol}: of very many ${name} no more than the limit become events`, () => {
    const opening = protocol === "chat" ? { choices: [] } : { type: "response.created", response: {} };
    const { events, decoder } = decodePayloads([opening, payload], planFor(protocol));
    assert.equal(decoder.fault?.reason, "the reply has too many blocks");
    assert.equal(events.at(-1)?.type, "reply-error");
    assert.ok(events.length <= EVENTS_PER_BLOCK * REPLY_BLOCKS_MAX + OTHER_EVENTS, String(events.length));
  });
}
