/**
 * If a hold cannot be extended, an open-ended stream ends after any of its frames (ARCHITECTURE.md promises 1 and 8).
 * In all nine directions every recording is cut after each frame, and the strictest reader of the client's protocol
 * must find a complete, truncated reply.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import type { StreamConverter } from "../../../../src/convert/exchange.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { NO_USAGE } from "../../../../src/values/tokens/usage.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "../encode/accumulate.ts";
import { clientRequest, countingContext, routeOf } from "./rig.ts";
import { bodyOf, type Recording, recordings } from "./stream-cases.ts";

type Json = Record<string, unknown>;

const READERS: Readonly<Record<Protocol, (text: string) => Json>> = {
  chat: accumulateChat,
  messages: accumulateMessages,
  responses: accumulateResponses,
};
const USAGE = { ...NO_USAGE, input: 11, output: 7 };

function converterOf(client: Protocol, upstream: Protocol): StreamConverter {
  const permitted = { outputLimit: undefined, openEnded: true, strict: false };
  const request = clientRequest(client, bodyOf(client));
  const exchange = openExchange(request, routeOf(upstream), permitted, countingContext());
  assert.ok(!isRefusal(exchange));
  return exchange.stream();
}

/** The frames of a recording, each with its blank line. */
function framesOf(bytes: Buffer): string[] {
  return bytes
    .toString()
    .replaceAll("\r\n", "\n")
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => `${frame}\n\n`);
}

/**
 * Pushes the first `count` frames and truncates.
 * @returns undefined if the stream was already over, or not yet open.
 */
function truncated(client: Protocol, upstream: Protocol, frames: readonly string[], count: number): string | undefined {
  const converter = converterOf(client, upstream);
  const pieces = converter.push(Buffer.from(frames.slice(0, count).join("")));
  if (converter.ended || converter.fault || converter.draining || !converter.opened) return undefined;
  const last = converter.truncate(USAGE);
  assert.ok(converter.ended && last.some((frame) => frame.terminal));
  assert.deepEqual([converter.push(Buffer.from(frames.slice(count).join(""))), converter.end()], [[], []]);
  const text = Buffer.concat([...pieces, ...last].map((frame) => frame.bytes)).toString();
  return text.replaceAll(/^:.*\n\n/gm, ""); // Comments pass, and a reader ignores them.
}

/** The reason for the end and the reported output, as each protocol writes them. */
const ENDING: Readonly<Record<Protocol, (reply: Json) => unknown[]>> = {
  chat: (reply) => [reply.finish_reason, (reply.usage as Json).completion_tokens],
  messages: (reply) => [reply.stop_reason, (reply.usage as Json).output_tokens],
  responses: (reply) => [
    reply.status,
    (reply.incomplete_details as Json | null)?.reason,
    (reply.usage as Json).output_tokens,
  ],
};
const CUT: Readonly<Record<Protocol, unknown[]>> = {
  chat: ["length", 7],
  messages: ["max_tokens", 7],
  responses: ["incomplete", "max_output_tokens", 7],
};

/** A frame with the upstream's stop reason. Only the end follows it. */
const STOPPED = /"finish_reason":"|"stop_reason":"/;

/** Interleaved items are passed through unchanged, but the strict reader of this test needs them in sequence. */
function isReadable({ name }: Recording, client: Protocol, upstream: Protocol): boolean {
  return !(client === upstream && name === "interleaved-calls");
}

for (const client of PROTOCOL_NAMES) {
  for (const upstream of PROTOCOL_NAMES) {
    test(`${client} client, ${upstream} upstream: a stream cut after any frame ends as a truncated reply`, () => {
      const names = new Map(recordings(upstream).map((recording) => [recording.name, recording]));
      let cuts = 0;
      for (const recording of names.values()) {
        if (!isReadable(recording, client, upstream)) continue;
        const frames = framesOf(recording.bytes);
        for (let count = 1; count <= frames.length; count++) {
          const text = truncated(client, upstream, frames, count);
          if (text === undefined) continue;
          const reply = READERS[client](text);
          if (frames.slice(0, count).some((frame) => STOPPED.test(frame))) continue;
          assert.deepEqual(ENDING[client](reply), CUT[client], `${recording.name} after frame ${count}`);
          cuts++;
        }
      }
      assert.ok(cuts > 50, `${cuts} cuts`);
    });
  }
}

test("chat: a stream without any choice yet ends as a truncated reply of the first choice", () => {
  // Azure's first chunk contains only the filter results of the prompt.
  const before = { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: null };
  const converter = converterOf("chat", "chat");
  const pieces = converter.push(Buffer.from(`data: ${JSON.stringify({ ...before, prompt_filter_results: [] })}\n\n`));
  const frames = [...pieces, ...converter.truncate(USAGE)];
  assert.equal(converter.ended, true);
  const reply = accumulateChat(Buffer.concat(frames.map((frame) => frame.bytes)).toString());
  assert.deepEqual(ENDING.chat(reply), CUT.chat);
});

test("a stream that is cut after its stop reason ends with that reason", () => {
  const converter = converterOf("chat", "messages");
  const payloads = [
    { type: "message_start", message: { id: "m", content: [], usage: { input_tokens: 3, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "whole" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  ];
  const text = payloads.map((payload) => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`).join("");
  const frames = [...converter.push(Buffer.from(text)), ...converter.truncate(USAGE)];
  const reply = accumulateChat(Buffer.concat(frames.map((frame) => frame.bytes)).toString());
  assert.deepEqual(ENDING.chat(reply), ["stop", 7]);
});
