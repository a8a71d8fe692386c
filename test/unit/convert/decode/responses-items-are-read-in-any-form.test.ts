/**
 * Responses servers send their items in many ways. Each text arrives once and in its item (docs/translation-rules.md
 * rule 55).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { ReplyEvent } from "../../../../src/convert/hub-reply.ts";
import { REPLY_BLOCKS_MAX } from "../../../../src/convert/reply/sink.ts";
import { decodePayloads, gather, outline, planFor } from "./decoding.ts";

const PLAN = planFor("responses");
const CREATED = { type: "response.created", response: { id: "resp_1", created_at: 7.5, service_tier: "default" } };
const completed = (output: readonly object[], rest: object = {}) => ({
  type: "response.completed",
  response: { id: "resp_1", status: "completed", output, ...rest },
});
const message = (...texts: readonly string[]) => ({
  id: "msg_1",
  type: "message",
  content: texts.map((text) => ({ type: "output_text", text })),
});
const call = (id: string, args: string) => ({
  ...{ id: `fc_${id}`, type: "function_call", call_id: id, name: "f", arguments: args },
});
const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item });
const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item });

function decode(...payloads: readonly object[]): readonly ReplyEvent[] {
  return decodePayloads([CREATED, ...payloads], PLAN).events;
}

/** Items as short strings. */
function itemsOf(events: readonly ReplyEvent[]): readonly string[] {
  return gather(events).items.map((item) => {
    if (item.type === "tool-call") return `${item.id} ${item.input}`;
    if (item.type === "image") return `image ${item.url}`;
    return item.type === "text" && item.startsMessage ? `text! ${item.text}` : `${item.type} ${item.text}`;
  });
}

test("an empty output at the end removes nothing", () => {
  const events = decode(
    added(0, message()),
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "hey" },
    completed([]),
  );
  assert.deepEqual(itemsOf(events), ["text! hey"]);
  assert.deepEqual(outline(events).slice(-3), ["text-end", "reply-stop", "reply-end"]);
});

test("a reply may have its items in the last event only", () => {
  const reasoning = { id: "rs", type: "reasoning", summary: [{ text: "a" }, { text: "b" }], encrypted_content: "enc" };
  const output = [reasoning, message("x", "y"), { type: "web_search_call", id: "ws" }, call("c1", '{"a":1}')];
  assert.deepEqual(itemsOf(decode(completed(output))), ["reasoning a\n\nb", "text! x", "text y", 'c1 {"a":1}']);
});

test("a reply may consist of the last event only", () => {
  const { events } = decodePayloads([completed([message("x")])], PLAN);
  assert.deepEqual(itemsOf(events), ["text! x"]);
});

test("items are found by output_index if their ids change from event to event", () => {
  const events = decode(
    added(0, { ...call("c1", ""), id: "one" }),
    { type: "response.function_call_arguments.delta", item_id: "two", output_index: 0, delta: '{"a":' },
    { type: "response.function_call_arguments.delta", item_id: "three", output_index: 0, delta: "1}" },
    done(0, { ...call("c1", '{"a":1}'), id: "four" }),
    completed([{ ...call("c1", '{"a":1}'), id: "five" }]),
  );
  assert.deepEqual(itemsOf(events), ['c1 {"a":1}']);
});

test("interleaved items are told apart", () => {
  const piece = (id: string, output_index: number, delta: string) => ({
    ...{ type: "response.function_call_arguments.delta", item_id: `fc_${id}`, output_index, delta },
  });
  const events = decode(
    ...[added(0, call("a", "")), added(1, call("b", "")), piece("b", 1, '{"y"'), piece("a", 0, '{"x"')],
    ...[piece("b", 1, ":2}"), piece("a", 0, ":1}"), done(1, call("b", '{"y":2}')), done(0, call("a", '{"x":1}'))],
    completed([]),
  );
  assert.deepEqual(itemsOf(events), ['a {"x":1}', 'b {"y":2}']);
});

test("deltas without an open item open one (rule 52)", () => {
  const events = decode(
    { type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta: "a" },
    { type: "response.reasoning_summary_text.delta", item_id: "r", output_index: 1, summary_index: 0, delta: "b" },
    { type: "response.function_call_arguments.delta", item_id: "fc_c", output_index: 2, delta: "{}" },
    done(2, call("c", "{}")),
    completed([]),
  );
  assert.deepEqual(itemsOf(events), ["text! a", "reasoning b", "c {}"]);
});

test("text after an item's end is another text, which also ends", () => {
  const delta = (text: string) => ({
    ...{ type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: text },
  });
  const events = decode(added(0, message()), delta("a"), done(0, message("a")), delta("b"), completed([message("a")]));
  assert.deepEqual(itemsOf(events), ["text! a", "text b"]);
});

test("deltas without item and position belong to the newest item of their kind", () => {
  const delta = (text: string) => ({ type: "response.output_text.delta", delta: text });
  assert.deepEqual(itemsOf(decode(added(0, message()), delta("he"), delta("y"), completed([]))), ["text! hey"]);
});

test("a delta with another item's id does not go into the newest item", () => {
  const words = (item_id: string, delta: string) => ({ type: "response.output_text.delta", item_id, delta });
  const input = (item_id: string, delta: string) => ({
    ...{ type: "response.function_call_arguments.delta", item_id, delta },
  });
  const events = decode(
    ...[added(0, message()), words("msg_1", "hey"), words("msg_2", "ho")],
    ...[added(1, call("a", "")), input("fc_a", '{"x":1}'), input("fc_b", '{"y":2}')],
    completed([message("hey"), { ...message("ho"), id: "msg_2" }, call("a", '{"x":1}'), call("b", '{"y":2}')]),
  );
  assert.deepEqual(itemsOf(events), ["text! hey", "text! ho", 'a {"x":1}', 'b {"y":2}']);
});

test("final forms add what was not streamed, and repeat nothing", () => {
  const part = { type: "output_text", text: "hey", annotations: [{ type: "url_citation", url: "u", title: "t" }] };
  const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const events = decode(
    added(0, message()),
    { type: "response.content_part.done", ...at, part },
    done(0, { ...message(), content: [part] }),
    completed([{ ...message(), content: [part] }]),
  );
  const [item] = gather(events).items;
  assert.deepEqual(item, {
    type: "text",
    text: "hey",
    startsMessage: true,
    citations: [{ url: "u", title: "t", startIndex: undefined, endIndex: undefined }],
    logprobs: undefined,
  });
  assert.equal(events.filter((event) => event.type === "text-delta").length, 1);
});

test("a message may have several parts, with log probabilities", () => {
  const at = (content_index: number) => ({ item_id: "msg_1", output_index: 0, content_index });
  const events = decode(
    added(0, message()),
    { type: "response.output_text.delta", ...at(0), delta: "a", logprobs: [{ token: "a" }] },
    { type: "response.refusal.delta", ...at(1), delta: "no" },
    { type: "response.output_text.delta", ...at(2), delta: "b", logprobs: [] },
    completed([]),
  );
  const { items, stop } = gather(events);
  assert.deepEqual(itemsOf(events), ["text! a", "refusal no", "text b"]);
  assert.deepEqual(items[0]?.type === "text" && items[0].logprobs, [{ token: "a" }]);
  assert.equal(stop.reason, "end");
});

test("summary parts are separated by a blank line, and the done item has what must go back", () => {
  const piece = (summary_index: number, delta: string) => ({
    ...{ type: "response.reasoning_summary_text.delta", item_id: "rs", output_index: 0, summary_index, delta },
  });
  const final = { id: "rs", type: "reasoning", summary: [{ text: "ab" }, { text: "c" }], encrypted_content: "whole" };
  const events = decode(
    added(0, { id: "rs", type: "reasoning", summary: [], encrypted_content: "part" }),
    ...[piece(0, "a"), piece(0, "b"), piece(1, "c"), done(0, final), completed([final])],
  );
  assert.deepEqual(gather(events).items, [
    { type: "reasoning", text: "ab\n\nc", opaque: "whole", native: final, redacted: false },
  ]);
});

test("reasoning without text is kept if it has encrypted content, and left out otherwise", () => {
  const silent = { id: "rs", type: "reasoning", summary: [], encrypted_content: "enc" };
  const [item] = gather(decode(added(0, silent), done(0, silent), completed([]))).items;
  assert.deepEqual(item, { type: "reasoning", text: "", opaque: "enc", native: silent, redacted: true });
  const empty = { id: "rs", type: "reasoning", summary: [] };
  assert.deepEqual(gather(decode(added(0, empty), done(0, empty), completed([empty]))).items, []);
});

test("incomplete replies have their reason", () => {
  const reasonOf = (reason: unknown, output: readonly object[] = []) => {
    const response = { status: "incomplete", incomplete_details: { reason }, output };
    return gather(decode({ type: "response.incomplete", response })).stop.reason;
  };
  assert.equal(reasonOf("max_output_tokens", [call("c", "{}")]), "output-limit");
  assert.equal(reasonOf("content_filter"), "refusal");
  assert.equal(reasonOf("max_messages"), "end");
  for (const none of [undefined, null, ""])
    assert.equal(reasonOf(none), "output-limit", "without a reason it is a truncation");
  assert.equal(reasonOf("steered", [call("c", "{}")]), "tool-calls");
  const response = { status: "incomplete", output: [] };
  const named = gather(decode({ type: "response.completed", response })).stop.reason;
  assert.equal(named, "output-limit", "even if the event is response.completed");
});

test("freeform calls may be native or wrapped, and a server's own namespace is ignored", () => {
  const log = { kind: "function", name: "log", namespace: "ns" } as const;
  const tools = { patch: { kind: "custom", name: "patch" }, ns__log: log } as const;
  const native = { type: "custom_tool_call", id: "ctc", call_id: "a", name: "patch", input: '{"input":"raw"}' };
  const wrapped = { type: "function_call", id: "f1", call_id: "b", name: "patch", arguments: '{"input":"text"}' };
  const spaced = { type: "function_call", id: "f2", call_id: "c", name: "log", namespace: "ns", arguments: "" };
  const own = { ...wrapped, id: "f3", call_id: "d", namespace: "functions" };
  const { events } = decodePayloads([CREATED, completed([native, wrapped, spaced, own])], planFor("responses", tools));
  assert.deepEqual(gather(events).items, [
    { type: "tool-call", id: "a", tool: tools.patch, input: '{"input":"raw"}' },
    { type: "tool-call", id: "b", tool: tools.patch, input: "text" },
    { type: "tool-call", id: "c", tool: log, input: "{}" },
    { type: "tool-call", id: "d", tool: tools.patch, input: "text" },
  ]);
});

test("keepalives pass, and hosted tools and unknown events are ignored", () => {
  const events = decode(
    { type: "keepalive" },
    added(0, { type: "web_search_call", id: "ws" }),
    { type: "response.web_search_call.searching", item_id: "ws", output_index: 0 },
    done(0, { type: "web_search_call", id: "ws" }),
    { type: "response.telepathy.delta", delta: "x" },
    completed([], { usage: { input_tokens: 3, output_tokens: 2 } }),
  );
  assert.deepEqual(outline(events), ["reply-start", "ping", "reply-stop", "reply-end"]);
  assert.deepEqual(events[0], { type: "reply-start", upstreamId: "resp_1", serviceTier: "default", createdS: 7 });
});

test("reasoning whose server numbers each delta is one text, however long", () => {
  const words = Array.from({ length: REPLY_BLOCKS_MAX + 1 }, (_, index) => `${index} `);
  const deltas = words.map((delta, content_index) => {
    return { type: "response.reasoning_text.delta", item_id: "rs", output_index: 0, content_index, delta };
  });
  const events = decode(added(0, { id: "rs", type: "reasoning" }), ...deltas, completed([message("x")]));
  assert.deepEqual(itemsOf(events), [`reasoning ${words.join("")}`, "text! x"]);
});

test("reasoning after a part that has ended is another part, even if it was not opened", () => {
  const told = (type: string, content_index: number, words: object) => {
    return { type: `response.reasoning_text.${type}`, item_id: "rs", output_index: 0, content_index, ...words };
  };
  const events = decode(
    added(0, { id: "rs", type: "reasoning" }),
    told("delta", 0, { delta: "a" }),
    told("done", 0, { text: "a" }),
    told("delta", 1, { delta: "b" }),
    completed([message("x")]),
  );
  assert.deepEqual(itemsOf(events), ["reasoning a\n\nb", "text! x"]);
});
