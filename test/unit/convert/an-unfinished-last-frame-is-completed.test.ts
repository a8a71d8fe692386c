/** If a stream ends within its last frame, the gateway completes that frame before it writes its own. */
import assert from "node:assert/strict";
import test from "node:test";
import { openPassthrough } from "../../../src/convert/passthrough/passthrough.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { SseReader } from "../../../src/wire/sse.ts";
import { CONTEXT, PERMITTED, routeTo } from "./request/translate.ts";
import { clientRequest } from "./translate/rig.ts";

const CHUNK = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
const TEXT = { ...CHUNK, choices: [{ index: 0, delta: { content: "hi" }, finish_reason: null }] };
const END = { ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };

/** The bytes that a client is sent for this stream. */
function sentOf(bytes: string): Buffer {
  const request = clientRequest("chat", { model: "m", messages: [{ role: "user", content: "hi" }], stream: true });
  const exchange = openPassthrough(request, { ...routeTo("chat"), upstreamModel: "m" }, PERMITTED, CONTEXT);
  if (isRefusal(exchange)) throw new Error(JSON.stringify(exchange));
  const stream = exchange.stream();
  const frames = [...stream.push(Buffer.from(bytes)), ...stream.end()];
  return Buffer.concat(frames.map((frame) => frame.bytes));
}

/** The data of the frames that a client is sent. */
function read(bytes: string): string[] {
  const reader = new SseReader();
  reader.feed(sentOf(bytes));
  const found: string[] = [];
  for (let event = reader.next(); event; event = reader.next())
    if (event.data) found.push(Buffer.from(event.data).toString());
  assert.deepEqual(reader.end(), [], "no frame is incomplete");
  return found;
}

const [text, end] = [JSON.stringify(TEXT), JSON.stringify(END)];

for (const [name, last] of [
  ["no end at all", ""],
  ["a line feed", "\n"],
  ["a carriage return", "\r"],
  ["both", "\r\n"],
] as const) {
  test(`the last frame is completed before the next one if it ends with ${name}`, () => {
    assert.deepEqual(read(`data: ${text}\n\ndata: ${end}${last}`), [text, end, "[DONE]"]);
    assert.deepEqual(read(`data: ${text}\n\ndata: ${end}\n\ndata: [DONE]${last}`), [text, end, "[DONE]"]);
  });
}

test("half a comment, or an event name without data, is not joined to the frame that follows", () => {
  for (const rest of [": bye", "event: x", "event: x\n", "id: 1\r"])
    assert.deepEqual(read(`data: ${text}\n\ndata: ${end}\n\n${rest}`), [text, end, "[DONE]"], rest);
});

test("the bytes of the upstream stay as they are, and only what completes the frame is added", () => {
  const before = `data: ${text}\n\n`;
  for (const [rest, written] of [
    // The blank line is complete, except for a line feed that might have followed.
    [`data: ${text}\r\r`, `data: ${text}\r\r`],
    [`data: ${text}\r\n\r`, `data: ${text}\r\n\r`],
    [`data: ${text}\r\n`, `data: ${text}\r\n\n\n`],
    [`data: ${text}`, `data: ${text}\n\n`],
    [`data: ${text}\n\nevent: x`, `data: ${text}\n\n`],
    [`data: ${text}\n\n: bye\n`, `data: ${text}\n\n`],
  ] as const) {
    assert.equal(sentOf(before + rest).toString(), before + written, JSON.stringify(rest));
  }
});
