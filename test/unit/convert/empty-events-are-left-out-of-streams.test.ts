/**
 * docs/translation-rules.md rule 48: events without content are tolerated on a route of the client's own protocol as in
 * a translation.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ChatWatcher } from "../../../src/convert/chat/watch.ts";
import { MessagesWatcher } from "../../../src/convert/messages/watch.ts";
import { ResponsesWatcher } from "../../../src/convert/responses/watch.ts";
import type { Watcher } from "../../../src/convert/watch.ts";
import { SseReader } from "../../../src/wire/sse.ts";
import { decodeBytes, planFor } from "./decode/decoding.ts";

const CHUNK = { id: "c", choices: [{ index: 0, delta: { content: "hi" }, finish_reason: null }] };
const END = { id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

const ODD = [
  "data:\n\n",
  data({ choices: null }),
  'event: ping\ndata: {"type":"ping"}\n\n',
  "event: ping\ndata: {}\n\n",
];

function seen(watcher: Watcher, stream: string): string {
  const reader = new SseReader();
  reader.feed(Buffer.from(stream));
  let out = "";
  for (let event = reader.next(); event; event = reader.next()) {
    const { bytes } = watcher.see(event);
    assert.equal(watcher.fault, undefined, stream);
    if (bytes) out += Buffer.from(bytes);
  }
  return out;
}

test("chat: empty data, pings and chunks without choices are left out, and a terminal marker may end with a blank", () => {
  const watcher = new ChatWatcher({ includeUsage: false, rename: undefined, choices: 1 });
  const stream = [ODD.join(""), data(CHUNK), ODD.join(""), data(END)].join("");
  assert.equal(seen(watcher, `${stream}data: [DONE] \n\n`), `${data(CHUNK)}${data(END)}data: [DONE] \n\n`);
  assert.equal(watcher.finish(), undefined);
  assert.equal(watcher.fault, undefined);
});

test("chat: a translation ignores the same events", () => {
  const stream = [ODD.join(""), data(CHUNK), ODD.join(""), data(END), "data: [DONE]\n\n"].join("");
  const { events, decoder } = decodeBytes([Buffer.from(stream)], planFor("chat"));
  assert.equal(decoder.fault, undefined);
  assert.equal(events.at(-1)?.type, "reply-end");
});

test("messages and responses: empty data and chat's terminal marker are left out", () => {
  for (const watcher of [new MessagesWatcher({ rename: undefined }), new ResponsesWatcher({ rename: undefined })]) {
    assert.equal(seen(watcher, "data:\n\ndata: [DONE] \n\n"), "");
  }
});
