/** A stream that ends within its last frame: what the gateway writes behind it is a frame of its own. */
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

/** What a client reads of it, frame by frame. */
function read(bytes: string): string[] {
  const request = clientRequest("chat", { model: "m", messages: [{ role: "user", content: "hi" }], stream: true });
  const exchange = openPassthrough(request, routeTo("chat"), PERMITTED, CONTEXT);
  if (isRefusal(exchange)) throw new Error(JSON.stringify(exchange));
  const stream = exchange.stream();
  const frames = [...stream.push(Buffer.from(bytes)), ...stream.end()];
  const sent = Buffer.concat(frames.map((frame) => frame.bytes));
  const reader = new SseReader();
  reader.feed(sent);
  const found: string[] = [];
  for (let event = reader.next(); event; event = reader.next())
    if (event.data) found.push(Buffer.from(event.data).toString());
  assert.deepEqual(reader.end(), [], "nothing is left without its end");
  return found;
}

const [text, end] = [JSON.stringify(TEXT), JSON.stringify(END)];

for (const [name, last] of [
  ["no end at all", ""],
  ["a line feed", "\n"],
  ["a carriage return", "\r"],
  ["both", "\r\n"],
] as const) {
  test(`behind the last frame: ${name}`, () => {
    assert.deepEqual(read(`data: ${text}\n\ndata: ${end}${last}`), [text, end, "[DONE]"]);
    assert.deepEqual(read(`data: ${text}\n\ndata: ${end}\n\ndata: [DONE]${last}`), [text, end, "[DONE]"]);
  });
}

test("half a comment, or an event's name without its data, is no part of what follows", () => {
  for (const rest of [": bye", "event: x", "event: x\n", "id: 1\r"])
    assert.deepEqual(read(`data: ${text}\n\ndata: ${end}\n\n${rest}`), [text, end, "[DONE]"], rest);
});
