/**
 * Without a count of the server, what the model has produced is charged, and it is the same whether the reply comes as
 * a stream or whole (docs/translation-rules.md rule 53): a name, arguments or sealed reasoning that a stream sends twice
 * count once, and a call without arguments costs its name only.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { isFault } from "../../../../src/convert/exchange.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { CONTEXT, PERMITTED } from "../request/translate.ts";
import { clientRequest, convertStream, routeOf, smallBody, sse } from "../translate/rig.ts";

const SEALED = "c2VhbGVk".repeat(40);
const TOOLS: Readonly<Record<Protocol, object>> = {
  chat: { type: "function", function: { name: "look" } },
  messages: { name: "look", input_schema: { type: "object" } },
  responses: { type: "function", name: "look" },
};

function exchangeOf(client: Protocol, upstream: Protocol, stream: boolean) {
  const request = clientRequest(client, smallBody(client, { stream, tools: [TOOLS[client]] }));
  const exchange = openExchange(request, routeOf(upstream), PERMITTED, CONTEXT);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

function wholeCounts(client: Protocol, upstream: Protocol, body: object) {
  const reply = exchangeOf(client, upstream, false).whole(Buffer.from(JSON.stringify(body)));
  assert.ok(!isFault(reply));
  const { bytes, tokens } = reply.counts.produced;
  return { bytes, tokens };
}

function streamCounts(client: Protocol, upstream: Protocol, bytes: string) {
  const { bytes: produced, tokens } = convertStream(exchangeOf(client, upstream, true), [
    Buffer.from(bytes),
  ]).converter.counts().produced;
  return { bytes: produced, tokens };
}

const CALL = { type: "function_call", id: "fc_1", call_id: "c1", name: "look", arguments: "" };
const REASONING = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: SEALED };
const RESPONSE = { id: "r", object: "response", status: "completed", output: [REASONING, CALL] };
const MESSAGE = {
  id: "m",
  type: "message",
  role: "assistant",
  content: [{ type: "tool_use", id: "c1", name: "look", input: {} }],
  stop_reason: "tool_use",
};

for (const client of PROTOCOL_NAMES) {
  test(`${client}: one object in place of a stream counts like the whole reply`, () => {
    for (const [upstream, body] of [
      ["messages", MESSAGE],
      ["responses", RESPONSE],
    ] as const) {
      assert.deepEqual(streamCounts(client, upstream, JSON.stringify(body)), wholeCounts(client, upstream, body));
    }
  });

  test(`${client}: sealed reasoning of which the beginning comes with the opening form counts once`, () => {
    const begun = { ...REASONING, encrypted_content: SEALED.slice(0, 80) };
    const stream = sse("responses", [
      { type: "response.created", sequence_number: 0, response: { id: "r", output: [] } },
      { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: begun },
      { type: "response.output_item.done", sequence_number: 2, output_index: 0, item: REASONING },
      { type: "response.output_item.added", sequence_number: 3, output_index: 1, item: CALL },
      { type: "response.output_item.done", sequence_number: 4, output_index: 1, item: CALL },
      { type: "response.completed", sequence_number: 5, response: RESPONSE },
    ]);
    assert.deepEqual(streamCounts(client, "responses", stream), wholeCounts(client, "responses", RESPONSE));
  });

  for (const [what, call] of [
    ["arguments", { ...CALL, arguments: '{"city":"Paris"}' }],
    ["input", { type: "custom_tool_call", id: "ct_1", call_id: "c1", name: "look", input: "Paris" }],
  ] as const) {
    test(`${client}: ${what} that the opening form of a call has already count once`, () => {
      const response = { ...RESPONSE, output: [call] };
      const stream = sse("responses", [
        { type: "response.created", sequence_number: 0, response: { id: "r", output: [] } },
        { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: call },
        { type: "response.output_item.done", sequence_number: 2, output_index: 0, item: call },
        { type: "response.completed", sequence_number: 3, response },
      ]);
      assert.deepEqual(streamCounts(client, "responses", stream), wholeCounts(client, "responses", response));
    });
  }

  test(`${client}: sealed reasoning counts once although its summary comes between its two forms`, () => {
    const begun = { ...REASONING, encrypted_content: SEALED.slice(0, 80) };
    const done = { ...REASONING, summary: [{ type: "summary_text", text: "so" }] };
    const response = { ...RESPONSE, output: [done] };
    const place = { item_id: "rs_1", output_index: 0, summary_index: 0 };
    const stream = sse("responses", [
      { type: "response.created", sequence_number: 0, response: { id: "r", output: [] } },
      { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: begun },
      { type: "response.reasoning_summary_text.delta", sequence_number: 2, ...place, delta: "so" },
      { type: "response.output_item.done", sequence_number: 3, output_index: 0, item: done },
      { type: "response.completed", sequence_number: 4, response },
    ]);
    assert.deepEqual(streamCounts(client, "responses", stream), wholeCounts(client, "responses", response));
  });

  test(`${client}: the name of a call that comes whole only with the last event counts once`, () => {
    const called = { ...CALL, arguments: '{"a":1}' };
    const response = { ...RESPONSE, output: [called] };
    const stream = sse("responses", [
      { type: "response.created", sequence_number: 0, response: { id: "r", output: [] } },
      { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: CALL },
      { type: "response.completed", sequence_number: 2, response },
    ]);
    assert.deepEqual(streamCounts(client, "responses", stream), wholeCounts(client, "responses", response));
  });
}
