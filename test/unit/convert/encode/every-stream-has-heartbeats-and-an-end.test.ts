/**
 * Heartbeats and failures in each client's own form (ARCHITECTURE.md promise 8), and which frames are marked semantic
 * and terminal (docs/translation-rules.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { StreamConverter } from "../../../../src/convert/exchange.ts";
import { answerOf, refusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { exchangeOf, framesOf, REQUEST_ID, routeOf, smallBody, sse } from "../translate/rig.ts";

type Json = Record<string, unknown>;

const UPSTREAM: Readonly<Record<Protocol, Protocol>> = { chat: "messages", messages: "chat", responses: "chat" };

/** A stream of each client after one word of text. */
function opened(client: Protocol): StreamConverter {
  const converter = fresh(client);
  converter.push(Buffer.from(ONE_WORD[UPSTREAM[client]] ?? ""));
  assert(converter.opened && !converter.ended);
  return converter;
}

function fresh(client: Protocol): StreamConverter {
  return exchangeOf(client, smallBody(client, { stream: true }), routeOf(UPSTREAM[client])).stream();
}

const CHUNK = { id: "c", created: 5, choices: [{ index: 0, delta: { content: "word" }, finish_reason: null }] };
const ONE_WORD: Readonly<Record<string, string>> = {
  chat: sse("chat", [CHUNK]),
  messages: sse("messages", [
    { type: "message_start", message: { id: "m", content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "word" } },
  ]),
};
const ENDING: Readonly<Record<string, string>> = {
  chat: sse("chat", [{ ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"]),
  messages: sse("messages", [
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ]),
};

function beat(converter: StreamConverter): Json & { type?: string } {
  const bytes = converter.heartbeat();
  assert(bytes);
  const [frame] = framesOf(Buffer.from(bytes).toString());
  assert(frame);
  return frame.data;
}

test("a stream has no heartbeat before it has opened or after it has ended", () => {
  for (const client of PROTOCOL_NAMES) {
    assert.equal(fresh(client).heartbeat(), undefined);
    const converter = opened(client);
    converter.push(Buffer.from(ENDING[UPSTREAM[client]] ?? ""));
    assert(converter.ended);
    assert.equal(converter.heartbeat(), undefined);
  }
});

test("the heartbeat of a chat stream is an empty delta with the stream's id", () => {
  const converter = opened("chat");
  const { choices, id, object } = beat(converter);
  assert.match(String(id), /^chatcmpl-/);
  assert.equal(object, "chat.completion.chunk");
  assert.deepEqual(choices, [{ index: 0, delta: {}, logprobs: null, finish_reason: null }]);
});

test("the heartbeat of a messages stream is a ping", () => {
  assert.deepEqual(beat(opened("messages")), { type: "ping" });
});

test("the heartbeat of a responses stream is a keepalive with the next sequence number", () => {
  const converter = opened("responses");
  const first = beat(converter);
  const second = beat(converter);
  assert.equal(first.type, "keepalive");
  assert.equal(second.sequence_number, Number(first.sequence_number) + 1);
  const [more] = converter.push(Buffer.from(ONE_WORD.chat ?? ""));
  const [next] = framesOf(Buffer.from(more?.bytes ?? []).toString());
  assert.equal(next?.data.sequence_number, Number(second.sequence_number) + 1);
});

test("a failed stream ends with its protocol's failure and has no proper end", () => {
  const answer = answerOf(refusal("upstream_timeout"));
  for (const client of PROTOCOL_NAMES) {
    const text = Buffer.from(opened(client).fail(answer, REQUEST_ID)).toString();
    const frames = framesOf(text);
    assert.doesNotMatch(text, /\[DONE\]|message_stop|response\.completed|"finish_reason":"/);
    const error = (frames[0]?.data.error ?? {}) as Json;
    if (client === "chat")
      assert.deepEqual([frames.length, error.type, error.code], [1, "server_error", "server_error"]);
    if (client === "messages") assert.deepEqual([frames[0]?.event, error.type], ["error", "overloaded_error"]);
    if (client === "responses") {
      assert.deepEqual(
        frames.map(({ event }) => event),
        ["error", "response.failed"],
      );
      const response = frames[1]?.data.response as Json;
      assert.deepEqual([response.status, (response.error as Json).code], ["failed", "server_error"]);
      assert.match(String(response.id), /^resp_[0-9a-f]{32}$/);
    }
  }
});

test("frames with text are semantic, opening frames are not, and the end is one terminal frame", () => {
  for (const client of PROTOCOL_NAMES) {
    const upstream = UPSTREAM[client];
    const converter = fresh(client);
    const [spoken] = converter.push(Buffer.from(ONE_WORD[upstream] ?? ""));
    assert.deepEqual([spoken?.semantic, spoken?.terminal], [true, false]);
    const ending = converter.push(Buffer.from(ENDING[upstream] ?? ""));
    assert.equal(ending.filter(({ terminal }) => terminal).length, 1);
    assert(ending.at(-1)?.terminal && ending.every(({ semantic }) => !semantic));
    assert.deepEqual(converter.push(Buffer.from(ONE_WORD[upstream] ?? "")), [], "nothing follows the end (rule 48)");
  }
  const quiet = fresh("chat").push(Buffer.from((ONE_WORD.messages ?? "").split("event: content_block_start")[0] ?? ""));
  assert.deepEqual([quiet[0]?.semantic, quiet[0]?.terminal], [false, false]);
});
