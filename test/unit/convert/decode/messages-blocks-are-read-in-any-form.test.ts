/**
 * Messages servers send their blocks in many ways. Each text arrives once and in its block (docs/translation-rules.md
 * rules 52 and 53).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { ReplyEvent } from "../../../../src/convert/hub-reply.ts";
import { decodeFrames, decodePayloads, frameOf, gather, outline, planFor, wholeOf } from "./decoding.ts";

const PLAN = planFor("messages");
const START = { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3, output_tokens: 1 } } };
const ENDING = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } };
const STOP = { type: "message_stop" };
const open = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const say = (index: number, delta: object) => ({ type: "content_block_delta", index, delta });
const text = (index: number, words: string) => say(index, { type: "text_delta", text: words });
const close = (index: number) => ({ type: "content_block_stop", index });

function decode(...payloads: readonly object[]): readonly ReplyEvent[] {
  return decodePayloads([START, ...payloads, ENDING, STOP], PLAN).events;
}

function wordsOf(events: readonly ReplyEvent[]): readonly string[] {
  return gather(events).items.map((item) =>
    item.type === "tool-call" ? `call ${item.input}` : `${item.type} ${"text" in item ? item.text : item.url}`,
  );
}

test("content in the opening event of a block is read", () => {
  const events = decode(
    ...[open(0, { type: "thinking", thinking: "th" }), say(0, { type: "thinking_delta", thinking: "ink" }), close(0)],
    ...[open(1, { type: "text", text: "he" }), text(1, "y"), close(1)],
    ...[open(2, { type: "tool_use", id: "c", name: "f", input: { a: 1 } }), close(2)],
  );
  assert.deepEqual(wordsOf(events), ["reasoning think", "text hey", 'call {"a":1}']);
});

test("content in message_start is blocks, and the last one may continue", () => {
  const begun = (...content: object[]) => ({ type: "message_start", message: { id: "msg_1", content } });
  const call = { type: "tool_use", id: "c", name: "f", input: { a: 1 } };
  const saying = (...payloads: object[]) => wordsOf(decodePayloads([...payloads, ENDING, STOP], PLAN).events);
  const thought = { type: "thinking", thinking: "hm", signature: "s" };
  const hey = { type: "text", text: "he" };
  assert.deepEqual(saying(begun(thought, hey, call)), ["reasoning hm", "text he", 'call {"a":1}']);
  assert.deepEqual(saying(begun(hey), text(0, "y"), close(0)), ["text hey"]);
  assert.deepEqual(saying(begun(hey), open(0, { type: "text", text: "" }), text(0, "y"), close(0)), [
    ...["text he", "text y"],
  ]);
  const opened = [open(0, { type: "text", text: "y" }), open(1, { type: "text", text: "b" }), text(0, "z")];
  assert.deepEqual(saying(begun(hey), ...opened), ["text he", "text yz", "text b"], "after another block has begun");

  const { events } = decodePayloads([begun(hey), open(1, { type: "text", text: "" }), text(1, "y")], PLAN);
  assert.deepEqual(outline(events).slice(0, 6), [
    ...["reply-start", "text-start", "text-delta", "text-end", "text-start", "text-delta"],
  ]);
});

test("streamed input replaces the input of the opening event", () => {
  const events = decode(
    open(0, { type: "tool_use", id: "c", name: "f", input: { a: 0 } }),
    say(0, { type: "input_json_delta", partial_json: '{"a":1}' }),
    close(0),
  );
  assert.deepEqual(wordsOf(events), ['call {"a":1}']);
});

test("thinking keeps its signature, and redacted thinking keeps its data", () => {
  const events = decode(
    open(0, { type: "thinking", thinking: "", signature: "" }),
    say(0, { type: "thinking_delta", thinking: "hm" }),
    say(0, { type: "signature_delta", signature: "sig" }),
    close(0),
    open(1, { type: "redacted_thinking", data: "secret" }),
    close(1),
  );
  const signed = { type: "thinking", thinking: "hm", signature: "sig" };
  const redacted = { type: "redacted_thinking", data: "secret" };
  assert.deepEqual(gather(events).items, [
    { type: "reasoning", text: "hm", opaque: "sig", native: signed, redacted: false },
    { type: "reasoning", text: "", opaque: "secret", native: redacted, redacted: true },
  ]);
});

test("thinking without text is kept for its signature", () => {
  const events = decode(
    open(0, { type: "thinking", thinking: "" }),
    say(0, { type: "signature_delta", signature: "s" }),
  );
  assert.deepEqual(outline(events), ["reply-start", "reasoning-start", "reasoning-end", "reply-stop", "reply-end"]);
});

test("deltas without an open block open one (rule 52), and blocks that are not closed end with the reply", () => {
  const events = decode(
    text(0, "a"),
    say(1, { type: "thinking_delta", thinking: "b" }),
    text(4, "c"),
    close(4),
    text(4, "d"),
  );
  assert.deepEqual(wordsOf(events), ["text a", "reasoning b", "text c", "text d"]);
});

test("overlapping blocks keep their own text", () => {
  const events = decode(
    open(0, { type: "text", text: "" }),
    open(1, { type: "text", text: "" }),
    text(1, "b"),
    text(0, "a"),
    text(1, "B"),
  );
  assert.deepEqual(wordsOf(events), ["text bB", "text a"]);
});

test("calls of tools that the server runs, and blocks of an unknown type, are left out", () => {
  const events = decode(
    open(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
    say(0, { type: "input_json_delta", partial_json: '{"query":"x"}' }),
    close(0),
    open(1, { type: "web_search_tool_result", tool_use_id: "s", content: [] }),
    close(1),
    open(2, { type: "text", text: "found" }),
    open(3, { type: "news", text: "and nobody" }),
    text(3, " knows it"),
    close(3),
  );
  assert.deepEqual(wordsOf(events), ["text found"]);
});

test("a web source covers its whole block, streamed or whole", () => {
  const source = { type: "web_search_result_location", url: "https://a.test", title: "A", cited_text: "..." };
  const place = { type: "char_location", document_index: 0 };
  const events = decode(
    open(0, { type: "text", text: "" }),
    say(0, { type: "citations_delta", citation: source }),
    say(0, { type: "citations_delta", citation: place }),
    text(0, "four"),
    close(0),
  );
  const whole = wholeOf({ content: [{ type: "text", text: "four", citations: [source, place] }] }, PLAN);
  assert.deepEqual(gather(events).items, whole.items);
  assert.deepEqual(whole.items[0]?.type === "text" && whole.items[0].citations, [
    { url: "https://a.test", title: "A", startIndex: 0, endIndex: 4 },
  ]);
});

test("counts are snapshots, and the last one is used", () => {
  const { decoder } = decodePayloads(
    [
      START,
      { ...ENDING, usage: { output_tokens: 5 } },
      { ...ENDING, usage: { output_tokens: 7, input_tokens: null } },
      STOP,
    ],
    PLAN,
  );
  assert.deepEqual([decoder.counts().usage?.input, decoder.counts().usage?.output], [3, 7]);
  assert.equal(decoder.counts().final, true);
  const silent = decodePayloads([START, { ...ENDING, usage: undefined }, STOP], PLAN).decoder;
  assert.equal(silent.counts().final, false);
});

test("each stop reason is read", () => {
  const stopOf = (ending: object) => {
    const { events } = decodePayloads([START, { type: "message_delta", delta: ending }, STOP], PLAN);
    const { stop } = gather(events);
    assert.deepEqual(wholeOf({ content: [], ...ending }, PLAN).stop, stop);
    return stop;
  };
  const words = [
    "end_turn",
    "max_tokens",
    "model_context_window_exceeded",
    "pause_turn",
    "refusal",
    "tool_use",
    "news",
  ];
  assert.deepEqual(
    words.map((stop_reason) => stopOf({ stop_reason }).reason),
    ["end", "output-limit", "context-limit", "pause", "refusal", "end", "end"],
  );
  assert.equal(stopOf({ stop_reason: "stop_sequence", stop_sequence: "END" }).stopSequence, "END");
});

test("a frame may have its type only in the event field, and chat's marker is ignored", () => {
  const frames = [START, open(0, { type: "text", text: "a" }), ENDING, STOP].map(({ type, ...rest }) =>
    frameOf(JSON.stringify(rest), type),
  );
  const { events } = decodeFrames([...frames.slice(0, 2), frameOf("[DONE]"), ...frames.slice(2)], PLAN);
  assert.deepEqual(wordsOf(events), ["text a"]);
});

test("pings are passed on after the reply has begun", () => {
  const ping = { type: "ping" };
  const { events } = decodePayloads([ping, START, ping, ENDING, STOP], PLAN);
  assert.deepEqual(outline(events), ["reply-start", "ping", "reply-stop", "reply-end"]);
});

test("the standard service tier is read as the default tier", () => {
  const usage = { input_tokens: 1, output_tokens: 1, service_tier: "standard" };
  assert.equal(wholeOf({ content: [], usage }, PLAN).serviceTier, "default");
});
