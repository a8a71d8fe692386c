/**
 * docs/translation-rules.md rules 49 and 56: what follows a call without arguments does not wait for the end, blocks
 * end at the upstream's stop reason, and an upstream that keeps its connection open after its stop reason and its count
 * has two seconds to send its terminal marker.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { StreamConverter } from "../../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { Relay } from "./relay.ts";
import { clientRequest, countingContext, exchangeOf, framesOf, routeOf, smallBody, sse } from "./rig.ts";

function converterFor(client: Protocol, upstream: Protocol): StreamConverter {
  const body = smallBody(client, {
    stream: true,
    ...(client === "chat" && { stream_options: { include_usage: true } }),
  });
  if (client !== upstream) return exchangeOf(client, body, routeOf(upstream)).stream();
  const permitted = { outputLimit: undefined, strict: false, inputEstimate: 7 };
  const exchange = openPassthrough(clientRequest(client, body), routeOf(upstream), permitted, countingContext());
  if (isRefusal(exchange)) throw new Error("refused");
  return exchange.stream();
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: "x",
  choices: [{ index: 0, delta, finish_reason }],
});
const call = (index: number, name: string | undefined, args: string) =>
  chunk({
    tool_calls: [
      {
        index,
        ...(name && { id: `c_${name}`, type: "function" }),
        function: { ...(name && { name }), arguments: args },
      },
    ],
  });

/** The types of the events that a client gets for these payloads of the upstream. */
function given(converter: StreamConverter, ...payloads: readonly unknown[]): string[] {
  const frames = converter.push(Buffer.from(sse("chat", payloads)));
  return framesOf(Buffer.concat(frames.map(({ bytes }) => bytes)).toString()).map(({ data }) => String(data.type));
}

test("a call after one without arguments is streamed once it has more than 256 characters", () => {
  const converter = converterFor("messages", "chat");
  given(converter, call(0, "f", ""));
  assert.deepEqual(given(converter, call(1, "g", '{"text":"')), []);
  const events = given(converter, call(1, undefined, "x".repeat(300)));
  assert.deepEqual(events, ["content_block_stop", "content_block_start", "content_block_delta", "content_block_delta"]);
  assert.deepEqual(given(converter, call(1, undefined, "y")), ["content_block_delta"]);
});

test("if the second of three calls is complete, the third call ends the first one, which has no arguments", () => {
  const converter = converterFor("messages", "chat");
  given(converter, call(0, "f", ""), call(1, "g", "{}"));
  const events = given(converter, call(2, "h", '{"a'));
  assert.deepEqual(events.slice(0, 4), [
    "content_block_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
  ]);
  assert.deepEqual(given(converter, call(2, undefined, '":1}')), ["content_block_delta"]);
});

test("text after a call without arguments is streamed", () => {
  const converter = converterFor("messages", "chat");
  given(converter, call(0, "f", ""));
  assert.deepEqual(given(converter, chunk({ content: "So" })), [
    "content_block_stop",
    "content_block_start",
    "content_block_delta",
  ]);
});

test("if the names of all calls come first and their arguments later in any order, each call gets its own", () => {
  const converter = converterFor("messages", "chat");
  const payloads = [
    ...["f", "g", "h"].map((name, index) => call(index, name, "")),
    ...[1, 0, 2].map((index) => call(index, undefined, `{"n":${index}}`)),
    chunk({}, "tool_calls"),
    "[DONE]",
  ];
  const frames = converter.push(Buffer.from(sse("chat", payloads)));
  const text = Buffer.concat(frames.map(({ bytes }) => bytes)).toString();
  const inputs = framesOf(text).flatMap(({ data }) => (data.delta as { partial_json?: string })?.partial_json ?? []);
  assert.deepEqual(inputs, ['{"n":0}', '{"n":1}', '{"n":2}']);
  assert.equal(converter.fault, undefined);
});

test("arguments for a call that has ended without any are a fault, so that no client runs it without them", () => {
  const converter = converterFor("messages", "chat");
  given(converter, call(0, "f", ""), chunk({ content: "So" }), call(0, undefined, '{"rm":"-rf"}'));
  assert.equal(converter.fault?.cause, "upstream_invalid");
});

test("blocks end at the finish reason, before the count and the marker", () => {
  for (const [client, ends] of [
    ["messages", "content_block_stop"],
    ["responses", "response.output_item.done"],
  ] as const) {
    const converter = converterFor(client, "chat");
    given(converter, chunk({ content: "hello" }));
    assert.ok(given(converter, chunk({}, "stop")).includes(ends), client);
    const other = converterFor(client, "chat");
    given(other, call(0, "f", ""));
    assert.ok(given(other, chunk({}, "tool_calls")).includes(ends), `${client}, a call`);
  }
});

test("the item that the limit cut is incomplete even if it ends early", () => {
  const converter = converterFor("responses", "chat");
  given(converter, chunk({ content: "hel" }));
  const frames = converter.push(Buffer.from(sse("chat", [chunk({}, "length")])));
  const done = framesOf(Buffer.concat(frames.map(({ bytes }) => bytes)).toString()).at(-1)?.data.item;
  assert.equal((done as { status: string }).status, "incomplete");
});

test("text after the finish reason is another block, and nothing is lost", () => {
  const converter = converterFor("messages", "chat");
  given(converter, chunk({ content: "one" }, "stop"));
  assert.deepEqual(given(converter, chunk({ content: "two" }, "stop")), [
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
  ]);
  assert.deepEqual(given(converter, "[DONE]"), ["message_delta", "message_stop"]);
});

// ------------------------------------------------------------------------------------------- a missing terminal marker

/** A reply without its terminal marker, in two parts, of which the second is the count. */
const REPLIES: Readonly<Record<"chat" | "messages", readonly [unknown[], unknown[]]>> = {
  chat: [
    [chunk({ content: "hello" }), chunk({}, "stop")],
    [{ id: "x", choices: [], usage: { prompt_tokens: 5, completion_tokens: 6 } }],
  ],
  messages: [
    [
      { type: "message_start", message: { id: "m", usage: { input_tokens: 5, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hello" } },
      { type: "content_block_stop", index: 0 },
    ],
    [{ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 6 } }],
  ],
};

const TERMINAL: Readonly<Record<Protocol, string>> = {
  chat: "[DONE]",
  messages: "message_stop",
  responses: "response.completed",
};

for (const upstream of ["chat", "messages"] as const) {
  for (const client of PROTOCOL_NAMES) {
    const [said, counted] = REPLIES[upstream];

    test(`${client} client, ${upstream} upstream: if the connection stays open, the answer ends after 2 s`, async () => {
      const relay = new Relay(converterFor(client, upstream));
      relay.say(sse(upstream, said));
      relay.pass(30_000);
      assert.ok(!relay.aborted, "an upstream without a count gets more time");
      relay.say(sse(upstream, counted));
      relay.pass(1_999);
      assert.ok(!relay.aborted);
      relay.pass(1);
      const { reason, complete, counts } = await relay.end;
      assert.ok(relay.aborted);
      assert.deepEqual([reason, complete, counts.final, counts.usage?.output], ["complete", true, true, 6]);
      const last = relay.frames().at(-1);
      assert.equal(last?.data.type ?? String(last?.data), TERMINAL[client]);
    });

    test(`${client} client, ${upstream} upstream: a marker in time ends the answer at once`, async () => {
      const relay = new Relay(converterFor(client, upstream));
      relay.say(sse(upstream, [...said, ...counted]));
      relay.pass(1_000);
      relay.say(sse(upstream, [upstream === "chat" ? "[DONE]" : { type: "message_stop" }]));
      assert.equal((await relay.end).reason, "complete");
      assert.ok(!relay.aborted);
    });
  }
}

test("the two seconds also apply if everything came in the first bytes", async () => {
  const [said, counted] = REPLIES.chat;
  const relay = new Relay(converterFor("messages", "chat"), sse("chat", [...said, ...counted]));
  relay.pass(2_000);
  assert.equal((await relay.end).reason, "complete");
});

test("an upstream that sends more text within the two seconds is not cut", async () => {
  const [said, counted] = REPLIES.chat;
  const relay = new Relay(converterFor("messages", "chat"));
  relay.say(sse("chat", [...said, ...counted]));
  relay.say(sse("chat", [chunk({ content: " again" })]));
  relay.pass(2_000);
  assert.ok(!relay.aborted);
  relay.say(sse("chat", [...counted, "[DONE]"]));
  const text = relay.frames().map(({ data }) => (data.delta as { text?: string })?.text ?? "");
  assert.equal((await relay.end).reason, "complete");
  assert.equal(text.join(""), "hello again");
});
