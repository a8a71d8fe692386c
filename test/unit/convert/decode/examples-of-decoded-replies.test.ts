/** Hand-written cases of decoded replies (docs/translation-rules.md rules 39 to 56). */
import assert from "node:assert/strict";
import test from "node:test";
import { writeUsage as writeChatUsage } from "../../../../src/convert/chat/usage.ts";
import { writeUsage as writeMessagesUsage } from "../../../../src/convert/messages/usage.ts";
import { decodePayloads, decodeWhole, gather, outline, planFor, wholeOf } from "./decoding.ts";

const MESSAGES = planFor("messages");
const CHAT = planFor("chat");
const RESPONSES = planFor("responses");

const message = (content: unknown[], rest: object = {}) => ({ id: "msg_1", type: "message", content, ...rest });
const messageStart = { type: "message_start", message: { id: "msg_1", content: [], usage: { input_tokens: 3 } } };
const start = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, part: object) => ({ type: "content_block_delta", index, delta: part });
const stop = (index: number) => ({ type: "content_block_stop", index });
const chunk = (part: object, finish_reason: string | null = null, rest: object = {}) => ({
  id: "chatcmpl-1",
  choices: [{ index: 0, delta: part, finish_reason }],
  ...rest,
});
const call = (index: number, id: string | undefined, name: string | undefined, text: string) => ({
  tool_calls: [{ index, id, function: { name, arguments: text } }],
});

test("cached tokens are counted once, and reasoning is part of the output", () => {
  const usage = {
    input_tokens: 10,
    cache_read_input_tokens: 90,
    cache_creation_input_tokens: 5,
    output_tokens: 20,
    output_tokens_details: { thinking_tokens: 8 },
  };
  const reply = wholeOf(message([{ type: "text", text: "x" }], { usage, stop_reason: "end_turn" }), MESSAGES);
  assert.ok(reply.usage);
  assert.deepEqual(writeChatUsage(reply.usage), {
    prompt_tokens: 105,
    completion_tokens: 20,
    total_tokens: 125,
    prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 8 },
  });
});

test("thinking, text and a call of a whole message are read", () => {
  const content = [
    { type: "thinking", thinking: "hm", signature: "sig" },
    { type: "text", text: "Let me" },
    { type: "tool_use", id: "toolu_1", name: "f", input: { q: "x" } },
  ];
  const reply = wholeOf(message(content, { stop_reason: "tool_use" }), MESSAGES);
  assert.deepEqual(reply.items, [
    { type: "reasoning", text: "hm", opaque: "sig", native: content[0], redacted: false },
    { type: "text", text: "Let me", startsMessage: true, citations: [], logprobs: undefined },
    { type: "tool-call", id: "toolu_1", tool: { kind: "function", name: "f" }, input: '{"q":"x"}' },
  ]);
  assert.equal(reply.stop.reason, "tool-calls");
});

test("calls after other blocks keep their order", () => {
  const use = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
  const payloads = [
    messageStart,
    ...[start(0, { type: "thinking", thinking: "" }), delta(0, { type: "thinking_delta", thinking: "t" }), stop(0)],
    ...[start(1, { type: "text", text: "" }), delta(1, { type: "text_delta", text: "a" }), stop(1)],
    ...[start(2, use("c1")), stop(2), start(3, use("c2")), stop(3)],
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
  const { items } = gather(decodePayloads(payloads, MESSAGES).events);
  assert.deepEqual(
    items.map((item) => (item.type === "tool-call" ? item.id : item.type)),
    ["reasoning", "text", "c1", "c2"],
  );
});

test("a call without any JSON has the input {}", () => {
  const payloads = [
    messageStart,
    start(0, { type: "tool_use", id: "c", name: "now", input: {} }),
    stop(0),
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
    { type: "message_stop" },
  ];
  const { events } = decodePayloads(payloads, MESSAGES);
  assert.deepEqual(
    events.find((event) => event.type === "tool-end"),
    { type: "tool-end", key: "1", input: "{}" },
  );
});

test("a reply has one stop and one end", () => {
  const { events } = decodePayloads(
    [messageStart, { type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }, "[DONE]"],
    MESSAGES,
  );
  assert.deepEqual(outline(events), ["reply-start", "reply-stop", "reply-end"]);
});

test("an error in the stream ends it", () => {
  const payloads = [
    messageStart,
    start(0, { type: "text", text: "some" }),
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
    { type: "message_stop" },
  ];
  const { events, decoder } = decodePayloads(payloads, MESSAGES);
  assert.deepEqual(events.at(-1), { type: "reply-error", code: "server_is_overloaded", message: "Overloaded" });
  assert.equal(decoder.fault?.cause, "upstream_unavailable");
});

test("the end of the body is a proper end only after message_delta", () => {
  const ending = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } };
  const said = [messageStart, start(0, { type: "text", text: "a" })];
  assert.deepEqual(outline(decodePayloads([...said, ending], MESSAGES).events).slice(-2), ["reply-stop", "reply-end"]);
  const { decoder } = decodePayloads(said, MESSAGES);
  assert.equal(decoder.fault?.code, "upstream_stream_truncated");
  assert.equal(decoder.counts().final, false);
  assert.equal(decoder.counts().usage?.input, 3);
});

test("a refusal keeps its category and explanation", () => {
  const stop_details = { type: "refusal", category: "cyber", explanation: "no" };
  const reply = wholeOf(message([], { stop_reason: "refusal", stop_details }), MESSAGES);
  assert.deepEqual(reply.items, []);
  assert.deepEqual(reply.stop, {
    reason: "refusal",
    stopSequence: undefined,
    refusal: { category: "cyber", explanation: "no" },
  });
});

test("cached tokens are subtracted from the input for messages", () => {
  const usage = { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 75 } };
  const reply = wholeOf({ choices: [{ message: { content: "x" }, finish_reason: "stop" }], usage }, CHAT);
  assert.ok(reply.usage);
  const written = writeMessagesUsage(reply.usage);
  assert.deepEqual(
    [written.input_tokens, written.cache_read_input_tokens, written.cache_creation_input_tokens, written.output_tokens],
    [25, 75, 0, 7],
  );
});

test("the stop reason depends on whether the reply has calls", () => {
  const tool_calls = [{ id: "c", function: { name: "f", arguments: "{}" } }];
  const reasonOf = (body: object, finish_reason: string) =>
    wholeOf({ choices: [{ message: body, finish_reason }] }, CHAT).stop.reason;
  assert.equal(reasonOf({ tool_calls }, "stop"), "tool-calls");
  assert.equal(reasonOf({ content: "x", tool_calls: [] }, "tool_calls"), "end");
  assert.equal(reasonOf({ tool_calls }, "length"), "output-limit");
  const streamed = (payloads: unknown[]) => gather(decodePayloads(payloads, CHAT).events).stop.reason;
  assert.equal(streamed([chunk(call(0, "c", "f", "{}")), chunk({}, "stop"), "[DONE]"]), "tool-calls");
  assert.equal(streamed([chunk({ content: "x" }), chunk({}, "tool_calls"), "[DONE]"]), "end");
  assert.equal(streamed([chunk(call(0, "c", undefined, "{}")), chunk({}, "tool_calls"), "[DONE]"]), "end");
});

test("interleaved calls keep their own input", () => {
  const usage = { prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 5 } };
  const { events } = decodePayloads(
    [
      chunk(call(0, "a", "f", "")),
      chunk(call(1, "b", "g", '{"y":')),
      chunk(call(0, undefined, undefined, '{"x":1}')),
      chunk(call(1, undefined, undefined, "2}")),
      chunk({}, "tool_calls"),
      { choices: [], usage },
      "[DONE]",
    ],
    CHAT,
  );
  const { items, stop, usage: counted } = gather(events);
  assert.deepEqual(items, [
    { type: "tool-call", id: "a", tool: { kind: "function", name: "f" }, input: '{"x":1}' },
    { type: "tool-call", id: "b", tool: { kind: "function", name: "g" }, input: '{"y":2}' },
  ]);
  assert.equal(stop.reason, "tool-calls");
  assert.deepEqual([counted?.input, counted?.cachedInput, counted?.output], [15, 5, 9]);
});

test("usage after the finish reason comes before the stop", () => {
  const payloads = [
    chunk({ content: "hi" }),
    chunk({}, "stop"),
    { choices: [], usage: { prompt_tokens: 4, completion_tokens: 2 } },
    "[DONE]",
  ];
  const { events } = decodePayloads(payloads, CHAT);
  assert.deepEqual(
    events.map((event) => event.type),
    [
      ...["reply-start", "text-start", "text-delta", "text-end"],
      ...["reply-stopping", "usage-update", "reply-stop", "reply-end"],
    ],
  );
});

test("reasoning is one block that ends before the text, with its text for the envelope", () => {
  const payloads = [
    chunk({ reasoning_content: "th" }),
    chunk({ reasoning_content: "ink" }),
    chunk({ content: "ok" }),
    chunk({}, "stop"),
    "[DONE]",
  ];
  const { events } = decodePayloads(payloads, CHAT);
  assert.deepEqual(outline(events), [
    ...["reply-start", "reasoning-start", "reasoning-delta", "reasoning-end"],
    ...["text-start", "text-delta", "text-end", "reply-stop", "reply-end"],
  ]);
  assert.deepEqual(
    events.find((event) => event.type === "reasoning-end"),
    { type: "reasoning-end", key: "1", opaque: undefined, native: "think" },
  );
});

test("a body that ends without a finish reason is a fault", () => {
  const { events, decoder } = decodePayloads([chunk({ content: "a" }), chunk({ content: "b" })], CHAT);
  assert.equal(events.at(-1)?.type, "reply-error");
  assert.equal(decoder.fault?.code, "upstream_stream_truncated");
});

test("the id of a call is its call_id, never the id of its item", () => {
  const item = { type: "function_call", id: "fc_9", call_id: "call_7", name: "f", arguments: "{}" };
  const reply = wholeOf({ status: "completed", output: [item] }, RESPONSES);
  assert.equal(reply.items[0]?.type === "tool-call" && reply.items[0].id, "call_7");
});

test("arguments that come only at the end are sent once", () => {
  const item = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "" };
  const done = { ...item, arguments: '{"a":1}' };
  const payloads = [
    { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 0, arguments: '{"a":1}' },
    { type: "response.output_item.done", output_index: 0, item: done },
    { type: "response.completed", response: { id: "resp_1", status: "completed", output: [done] } },
  ];
  const { events } = decodePayloads(payloads, RESPONSES);
  assert.deepEqual(
    events.filter((event) => event.type === "tool-delta" || event.type === "tool-end").map((event) => event.input),
    ['{"a":1}', '{"a":1}'],
  );
});

test("a failed response is a fault, whole or streamed", () => {
  const failed = { status: "failed", error: { code: "rate_limit_exceeded", message: "slow" }, output: [] };
  const whole = decodeWhole(failed, RESPONSES);
  assert.equal("cause" in whole && whole.cause, "upstream_rate_limit");
  const { events, decoder } = decodePayloads(
    [
      { type: "response.created", response: { id: "resp_1", output: [] } },
      { type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta: "text" },
      { type: "response.failed", response: failed },
    ],
    RESPONSES,
  );
  assert.deepEqual(events.at(-1), { type: "reply-error", code: "rate_limit_exceeded", message: "slow" });
  assert.equal(decoder.fault?.cause, "upstream_rate_limit");
});

test("a wrapped freeform call gives its text in one delta", () => {
  const plan = planFor("chat", { apply_patch: { kind: "custom", name: "apply_patch" } });
  const text = '{"input":"*** Begin Patch\\n"}';
  const { events } = decodePayloads(
    [
      chunk(call(0, "c", "apply_patch", text.slice(0, 9))),
      chunk(call(0, undefined, undefined, text.slice(9))),
      chunk({}, "tool_calls"),
      "[DONE]",
    ],
    plan,
  );
  assert.deepEqual(
    events.filter((event) => event.type.startsWith("tool-")),
    [
      { type: "tool-start", key: "1", id: "c", tool: { kind: "custom", name: "apply_patch" } },
      { type: "tool-delta", key: "1", input: "*** Begin Patch\n" },
      { type: "tool-end", key: "1", input: "*** Begin Patch\n" },
    ],
  );
});

test("a flattened name gets its namespace back", () => {
  const log = { kind: "function", name: "log", namespace: "mcp__git" } as const;
  const tool_calls = [{ id: "c", function: { name: "mcp__git__log", arguments: "{}" } }];
  const choices = [{ message: { tool_calls }, finish_reason: "tool_calls" }];
  const reply = wholeOf({ choices }, planFor("chat", { mcp__git__log: log }));
  assert.deepEqual(reply.items, [{ type: "tool-call", id: "c", tool: log, input: "{}" }]);
});

test("two deltas of a text give the events in order", () => {
  const payloads = [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "he" }),
    chunk({ content: "y" }),
    chunk({}, "stop"),
    { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } },
    "[DONE]",
  ];
  assert.deepEqual(
    decodePayloads(payloads, CHAT).events.map((event) => event.type),
    [
      ...["reply-start", "text-start", "text-delta", "text-delta"],
      ...["text-end", "reply-stopping", "usage-update", "reply-stop", "reply-end"],
    ],
  );
});

test("text deltas stay as they were cut, so that stop strings can be matched", () => {
  const delta = (text: string) => ({
    type: "response.output_text.delta",
    item_id: "m",
    output_index: 0,
    content_index: 0,
    delta: text,
  });
  const { events } = decodePayloads(
    [
      { type: "response.created", response: { id: "resp_1", output: [] } },
      delta("yes</bl"),
      delta("ock>no"),
      { type: "response.completed", response: { status: "completed", output: [] } },
    ],
    RESPONSES,
  );
  assert.deepEqual(
    events.flatMap((event) => (event.type === "text-delta" ? [event.text] : [])),
    ["yes</bl", "ock>no"],
  );
});
