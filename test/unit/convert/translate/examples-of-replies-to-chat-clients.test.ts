/** Hand-written cases: replies to chat clients, end to end (docs/translation-rules.md rules 39 to 56). */
import assert from "node:assert/strict";
import test from "node:test";
import { isFault } from "../../../../src/convert/exchange.ts";
import {
  block,
  chatCalls,
  choiceOf,
  FUNCTION_TOOLS,
  frameAt,
  type Json,
  joinArguments,
  message,
  messageStart,
  messagesStream,
  textBlock,
} from "./payloads.ts";
import { convertInOnePush, exchangeOf, framesOf, routeOf, smallBody, sse, wholeOf } from "./rig.ts";

test("the usage of messages is converted for a chat client", () => {
  const usage = {
    input_tokens: 10,
    cache_read_input_tokens: 90,
    cache_creation_input_tokens: 5,
    output_tokens: 20,
    output_tokens_details: { thinking_tokens: 8 },
  };
  const body = wholeOf("chat", smallBody("chat"), routeOf("messages"), message([], "end_turn", { usage }));
  assert.deepEqual(body.usage, {
    prompt_tokens: 105,
    completion_tokens: 20,
    total_tokens: 125,
    prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 8 },
  });
});

test("the blocks of a whole message become one chat message", () => {
  const content = [
    { type: "thinking", thinking: "hm", signature: "s" },
    { type: "text", text: "Let me" },
    { type: "tool_use", id: "toolu_1", name: "f", input: { q: "x" } },
  ];
  const ask = smallBody("chat", { tools: FUNCTION_TOOLS.chat });
  const body = wholeOf("chat", ask, routeOf("messages"), message(content, "tool_use"));
  const { finish_reason, message: said } = choiceOf(body);
  assert.match(String(body.id), /^chatcmpl-[0-9A-Za-z]{24}$/);
  assert.equal(finish_reason, "tool_calls");
  assert.deepEqual(said, {
    role: "assistant",
    content: "Let me",
    refusal: null,
    reasoning_content: "hm",
    tool_calls: [{ id: "toolu_1", type: "function", function: { name: "f", arguments: '{"q":"x"}' } }],
  });
});

test("the index of a call is its position among the calls", () => {
  const call = (index: number, id: string) =>
    block(index, { type: "tool_use", id, name: "f", input: {} }, [{ type: "input_json_delta", partial_json: "{}" }]);
  const upstream = messagesStream(
    [
      ...block(0, { type: "thinking", thinking: "", signature: "" }, [{ type: "thinking_delta", thinking: "hm" }]),
      ...textBlock(1, "hi"),
      ...call(2, "toolu_a"),
      ...call(3, "toolu_b"),
    ],
    "tool_use",
  );
  const { text } = convertInOnePush(
    "chat",
    smallBody("chat", { tools: FUNCTION_TOOLS.chat }),
    routeOf("messages"),
    upstream,
  );
  const started = chatCalls(text).filter((call) => "id" in call);
  assert.deepEqual(
    started.map(({ index, id }) => [index, id]),
    [
      [0, "toolu_a"],
      [1, "toolu_b"],
    ],
  );
});

test("a call without arguments gets an empty object", () => {
  const upstream = messagesStream(block(0, { type: "tool_use", id: "toolu_a", name: "f", input: {} }, []), "tool_use");
  const { text } = convertInOnePush(
    "chat",
    smallBody("chat", { tools: FUNCTION_TOOLS.chat }),
    routeOf("messages"),
    upstream,
  );
  assert.equal(joinArguments(chatCalls(text)), "{}");
});

test("only clients that asked for usage get it", () => {
  const { text } = convertInOnePush("chat", smallBody("chat"), routeOf("messages"), messagesStream(textBlock(0, "hi")));
  const frames = framesOf(text);
  for (const { data } of frames.slice(0, -1)) {
    assert(!("usage" in data));
    assert.equal((data.choices as unknown[]).length, 1);
  }
  assert.equal(frames.at(-1)?.data, "[DONE]");
});

test("an upstream's error in the middle ends a chat stream without a finish reason", () => {
  const upstream = sse("messages", [
    messageStart(),
    ...textBlock(0, "Once"),
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  ]);
  const { text } = convertInOnePush("chat", smallBody("chat"), routeOf("messages"), upstream);
  const last = frameAt(text, -1).data.error as Json;
  assert.deepEqual([last.type, last.code, last.param], ["server_error", "server_is_overloaded", null]);
  assert(!text.includes("[DONE]"));
  assert(!/"finish_reason":"/.test(text));
});

test("a stream without its last frame ends properly after its stop reason, and as truncated before it", () => {
  const whole = messagesStream(textBlock(0, "hi"));
  const withoutStop = whole.slice(0, whole.indexOf("event: message_stop"));
  const withoutDelta = whole.slice(0, whole.indexOf("event: message_delta"));
  const good = convertInOnePush("chat", smallBody("chat"), routeOf("messages"), withoutStop);
  assert.equal(frameAt(good.text, -1).data, "[DONE]");
  assert(good.text.includes('"finish_reason":"stop"'));
  const bad = convertInOnePush("chat", smallBody("chat"), routeOf("messages"), withoutDelta);
  assert.equal((frameAt(bad.text, -1).data.error as Json).code, "upstream_stream_truncated");
});

test("a refusal without text of the model has the vendor's text", () => {
  const stop_details = { type: "refusal", category: "cyber", explanation: "no" };
  const upstream = message([], "refusal", { stop_details });
  const { finish_reason, message: said } = choiceOf(wholeOf("chat", smallBody("chat"), routeOf("messages"), upstream));
  assert.deepEqual([finish_reason, said.content, said.refusal], ["content_filter", "", "no"]);
});

test("the id of a call is its call_id, not the id of its item", () => {
  const output = [{ type: "function_call", id: "fc_9", call_id: "call_7", name: "f", arguments: "{}" }];
  const upstream = { id: "resp_1", object: "response", status: "completed", output, usage: null };
  const body = wholeOf("chat", smallBody("chat", { tools: FUNCTION_TOOLS.chat }), routeOf("responses"), upstream);
  assert.equal((choiceOf(body).message.tool_calls as Json[])[0]?.id, "call_7");
});

test("arguments that come only at the end are sent once", () => {
  const item = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "" };
  const upstream = sse("responses", [
    { type: "response.created", response: { id: "resp_1", output: [] } },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.output_item.done", output_index: 0, item: { ...item, arguments: '{"a":1}' } },
    { type: "response.completed", response: { id: "resp_1", status: "completed", output: [] } },
  ]);
  const { text } = convertInOnePush(
    "chat",
    smallBody("chat", { tools: FUNCTION_TOOLS.chat }),
    routeOf("responses"),
    upstream,
  );
  assert.equal(joinArguments(chatCalls(text)), '{"a":1}');
});

test("a failed response in a 200 body is a fault", () => {
  const failed = {
    id: "resp_1",
    status: "failed",
    error: { code: "rate_limit_exceeded", message: "slow" },
    output: [],
  };
  const exchange = exchangeOf("chat", smallBody("chat"), routeOf("responses"));
  const reply = exchange.whole(Buffer.from(JSON.stringify(failed)));
  assert(isFault(reply));
  assert.equal(reply.cause, "upstream_rate_limit");
});

test("a failed response in a stream, after text, becomes an error chunk", () => {
  const upstream = sse("responses", [
    { type: "response.created", response: { id: "resp_1", output: [] } },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "Once" },
    { type: "response.failed", response: { id: "resp_1", error: { code: "rate_limit_exceeded", message: "slow" } } },
  ]);
  const { text } = convertInOnePush("chat", smallBody("chat"), routeOf("responses"), upstream);
  const error = frameAt(text, -1).data.error as Json;
  assert.deepEqual([error.type, error.code], ["rate_limit_error", "rate_limit_exceeded"]);
});
