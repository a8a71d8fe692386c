/** Hand-written cases: replies to messages clients, end to end (docs/translation-rules.md rules 39 to 56). */
import assert from "node:assert/strict";
import test from "node:test";
import { chunk, completion, FUNCTION_TOOLS, frameAt, type Json, PROMPT_7, usageChunk } from "./payloads.ts";
import { convertInOnePush, convertStream, exchangeOf, framesOf, routeOf, smallBody, sse, wholeOf } from "./rig.ts";

test("five stop strings, more than chat accepts, are matched by the gateway", () => {
  const stop_sequences = ["STOP1", "STOP2", "STOP3", "STOP4", "STOP5"];
  const upstream = completion({ role: "assistant", content: "ab STOP5 cd" }, "stop", PROMPT_7);
  const body = wholeOf("messages", smallBody("messages", { stop_sequences }), routeOf("chat"), upstream);
  assert.deepEqual(
    [body.content, body.stop_reason, body.stop_sequence],
    [[{ type: "text", text: "ab ", citations: null }], "stop_sequence", "STOP5"],
  );
});

test("the usage of chat is converted for a messages client", () => {
  const upstream = completion({ role: "assistant", content: "hi" }, "stop", {
    ...PROMPT_7,
    prompt_tokens_details: { cached_tokens: 75 },
  });
  const usage = wholeOf("messages", smallBody("messages"), routeOf("chat"), upstream).usage as Json;
  assert.deepEqual(
    [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens],
    [25, 75, 0, 7],
  );
});

test("the stop reason depends on whether the reply has calls", () => {
  const ask = smallBody("messages", { tools: FUNCTION_TOOLS.messages });
  const calls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
  const called = completion({ role: "assistant", content: null, tool_calls: calls }, "stop");
  const phantom = completion({ role: "assistant", content: "hi", tool_calls: [] }, "tool_calls");
  assert.equal(wholeOf("messages", ask, routeOf("chat"), called).stop_reason, "tool_use");
  assert.equal(wholeOf("messages", ask, routeOf("chat"), phantom).stop_reason, "end_turn");
});

test("interleaved calls are sent one after the other", () => {
  const call = (index: number, more: Json) => chunk({ tool_calls: [{ index, ...more }] });
  const upstream = sse("chat", [
    call(0, { id: "a", type: "function", function: { name: "f", arguments: "" } }),
    call(1, { id: "b", type: "function", function: { name: "g", arguments: '{"y":' } }),
    call(0, { function: { arguments: '{"x":1}' } }),
    call(1, { function: { arguments: "2}" } }),
    chunk({}, "tool_calls"),
    usageChunk({ prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 5 } }),
    "[DONE]",
  ]);
  const ask = smallBody("messages", { tools: FUNCTION_TOOLS.messages });
  const frames = framesOf(convertInOnePush("messages", ask, routeOf("chat"), upstream).text);
  const outline = frames.map(({ data }) => [data.type, data.index]);
  assert.deepEqual(outline, [
    ["message_start", undefined],
    ["content_block_start", 0],
    ["content_block_delta", 0],
    ["content_block_stop", 0],
    ["content_block_start", 1],
    ["content_block_delta", 1],
    ["content_block_delta", 1],
    ["content_block_stop", 1],
    ["message_delta", undefined],
    ["message_stop", undefined],
  ]);
  const { delta, usage } = frameAt(frames, -2).data as { delta: Json; usage: Json };
  assert.equal(delta.stop_reason, "tool_use");
  assert.deepEqual(
    [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens],
    [15, 5, 0, 9],
  );
});

test("usage after the finish reason is counted and sent once", () => {
  const upstream = sse("chat", [chunk({ content: "hi" }), chunk({}, "stop"), usageChunk(PROMPT_7), "[DONE]"]);
  const { text } = convertInOnePush("messages", smallBody("messages"), routeOf("chat"), upstream);
  const endings = framesOf(text).filter(({ event }) => event === "message_delta");
  assert.equal(endings.length, 1);
  assert.equal((frameAt(endings, 0).data.usage as Json).output_tokens, 7);
});

test("reasoning of a chat upstream becomes a signed thinking block, unless thinking is off", () => {
  const upstream = sse("chat", [
    chunk({ reasoning_content: "th" }),
    chunk({ reasoning_content: "ink" }),
    chunk({ content: "ok" }),
    chunk({}, "stop"),
    "[DONE]",
  ]);
  const route = routeOf("chat", { efforts: ["none", "low", "medium", "high"] });
  const shown = framesOf(convertInOnePush("messages", smallBody("messages"), route, upstream).text).map(
    ({ data }) => data,
  );
  const deltas = shown.filter(({ type }) => type === "content_block_delta").map(({ index, delta }) => [index, delta]);
  assert.deepEqual(deltas.slice(0, 2), [
    [0, { type: "thinking_delta", thinking: "th" }],
    [0, { type: "thinking_delta", thinking: "ink" }],
  ]);
  const [index, signed] = deltas[2] as [number, Json];
  assert.equal(index, 0);
  assert.match(String(signed.signature), /^gw1\../);
  assert.deepEqual(deltas[3], [1, { type: "text_delta", text: "ok" }]);
  const off = smallBody("messages", { thinking: { type: "disabled" } });
  const hidden = framesOf(convertInOnePush("messages", off, route, upstream).text).map(({ data }) => data);
  assert.deepEqual(
    hidden
      .filter(({ type }) => type === "content_block_start")
      .map(({ index, content_block }) => [index, content_block]),
    [[0, { type: "text", text: "", citations: null }]],
  );
});

test("a chat stream that breaks off is an error for a messages client", () => {
  const upstream = sse("chat", [chunk({ content: "Once" }), chunk({ content: " upon" })]);
  const { text, fault } = convertInOnePush("messages", smallBody("messages"), routeOf("chat"), upstream);
  assert.equal(fault?.code, "upstream_stream_truncated");
  const last = frameAt(text, -1);
  assert.deepEqual([last.event, (last.data.error as Json).type], ["error", "overloaded_error"]); // ARCHITECTURE.md promise 8.
  assert(!text.includes("message_stop"));
});

test("a stop string across deltas ends the text, and a mere beginning of one does not", () => {
  const ask = smallBody("messages", { stop_sequences: ["</block>"], stream: true });
  const outcome = (...deltas: string[]) => {
    const upstream = sse("responses", [
      { type: "response.created", response: { id: "resp_1", output: [] } },
      ...deltas.map((delta) => ({ type: "response.output_text.delta", item_id: "m", output_index: 0, delta })),
      { type: "response.completed", response: { id: "resp_1", status: "completed", output: [] } },
    ]);
    const frames = framesOf(
      convertStream(exchangeOf("messages", ask, routeOf("responses")), [Buffer.from(upstream)]).text,
    );
    const text = frames.map(({ data }) => (data.delta as Json | undefined)?.text ?? "").join("");
    const { stop_reason, stop_sequence } = frameAt(frames, -2).data.delta as Json;
    return [text, stop_reason, stop_sequence];
  };
  assert.deepEqual(outcome("yes</bl", "ock>no"), ["yes", "stop_sequence", "</block>"]);
  assert.deepEqual(outcome("a</bl", "ue>"), ["a</blue>", "end_turn", null]);
});
