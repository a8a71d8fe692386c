/** Stop strings that the upstream was not given (docs/translation-rules.md rule 25). */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { HubReply, ReplyEvent, ReplyItem } from "../../../../src/convert/hub-reply.ts";
import { StopWatch, stopReply } from "../../../../src/convert/translate/stop-emulation.ts";
import { areWatchable, STOP_CHARS_MAX, STOPS_MAX } from "../../../../src/convert/translate/stop-matcher.ts";
import { workTimer } from "../../../rig/stopwatch.ts";
import { callOf, eventsOf, replyOf, textItem } from "./encoding.ts";

const F = { kind: "function", name: "f" } as const;

function watched(stops: readonly string[], events: readonly ReplyEvent[]): ReplyEvent[] {
  const watch = new StopWatch(stops);
  return events.flatMap((event) => watch.push(event));
}

function textIn(events: readonly ReplyEvent[]): string {
  return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
}

/** The text before the stop string that is complete first; of two that end at the same position, before the longer. */
function textBefore(text: string, stops: readonly string[]): string {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter((stop) => stop !== "" && text.slice(0, end).endsWith(stop));
    if (found.length > 0) return text.slice(0, end - Math.max(...found.map((stop) => stop.length)));
  }
  return text;
}

test("for any text, stop strings and deltas, streamed and whole results agree with a plain search", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 30 });
  const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 4 }), { maxLength: 4 });
  fc.assert(
    fc.property(letters, stops, fc.integer({ min: 1, max: 7 }), (text, strings, chars) => {
      const reply = replyOf([textItem(text)]);
      const expected = textBefore(text, strings);
      assert.equal(textIn(watched(strings, eventsOf(reply, chars))), expected);
      assert.equal(textIn(eventsOf(stopReply(reply, strings))), expected);
    }),
    { numRuns: 3_000 },
  );
});

test("only text that may become a stop string is held back", () => {
  const watch = new StopWatch(["</block>"]);
  const push = (text: string) => textIn(watch.push({ type: "text-delta", key: "1", text, logprobs: undefined }));
  assert.equal(push("free text"), "free text");
  assert.equal(push("a</bl"), "a");
  assert.equal(push("ue> b"), "</blue> b");
  assert.equal(push("<"), "");
  assert.equal(textIn(watch.push({ type: "text-end", key: "1" })), "<", "the rest is sent when the text ends");
});

test("probabilities are sent once, with the first of their text that is not held back", () => {
  const watch = new StopWatch(["</block>"]);
  const push = (text: string, logprob: string) =>
    watch.push({ type: "text-delta", key: "1", text, logprobs: [logprob] }).map((event) => {
      assert.equal(event.type, "text-delta");
      return event.type === "text-delta" && [event.text, event.logprobs];
    });
  assert.deepEqual(push("a</bl", "one"), [["a", ["one"]]]);
  assert.deepEqual(push("ue>", "two"), [["</blue>", ["two"]]]);
  assert.deepEqual(push("<", "three"), []);
  assert.deepEqual(push("b", "four"), [["<b", ["three", "four"]]]);
});

test("a whole text that is cut loses its probabilities and sources, which may belong to what is gone", () => {
  const citation = { type: "url", url: "https://a.example" } as never;
  const reply = replyOf([Object.assign(textItem("a</block>b"), { citations: [citation], logprobs: ["one"] })]);
  const [item] = stopReply(reply, ["</block>"]).items;
  assert.deepEqual(item, { ...textItem("a"), citations: [], logprobs: undefined });
});

test("a stop string does not match across two texts", () => {
  const reply = replyOf([textItem("a</bl"), textItem("ock>b")]);
  assert.equal(textIn(watched(["</block>"], eventsOf(reply))), "a</block>b");
  assert.deepEqual(stopReply(reply, ["</block>"]), reply);
});

test("reasoning, refusals and arguments are not searched", () => {
  const items: ReplyItem[] = [
    { type: "reasoning", text: "STOP", opaque: undefined, native: "STOP", redacted: false },
    { type: "refusal", text: "STOP" },
    callOf("a", F, '{"x":"STOP"}'),
  ];
  assert.deepEqual(watched(["STOP"], eventsOf(replyOf(items))), eventsOf(replyOf(items)));
  assert.deepEqual(stopReply(replyOf(items), ["STOP"]), replyOf(items));
});

test("text and calls after a stop string are dropped, and usage is still counted", () => {
  const usage = { input: 1, cachedInput: 0, cacheWrite: 0, cacheWrite1h: 0, output: 9, reasoning: 0, toolCalls: {} };
  const reply: HubReply = replyOf([textItem("yes STOP no"), callOf("a", F, "{}"), textItem("more")], { usage });
  const told = watched(["STOP"], eventsOf(reply, 100));
  const stop = { reason: "stop-sequence", stopSequence: "STOP", refusal: undefined } as const;
  assert.deepEqual(told.slice(1), [
    { type: "text-start", key: "0", startsMessage: true },
    { type: "text-delta", key: "0", text: "yes ", logprobs: undefined },
    { type: "text-end", key: "0" },
    { type: "reply-stop", stop },
    { type: "usage-update", usage },
    { type: "reply-end" },
  ]);
  const whole = stopReply(reply, ["STOP"]);
  assert.deepEqual(whole, { ...reply, stop, items: [textItem("yes ")] });
});

test("hostile stop strings take time in proportion to the text", () => {
  const half = STOP_CHARS_MAX / 2;
  const stops = [`${"a".repeat(half - 1)}b`, `${"a".repeat(half - 2)}ca`];
  const text = `${"a".repeat(half - 2)}d`.repeat(20);
  const worked = workTimer();
  watched(stops, eventsOf(replyOf([textItem(text)]), 50));
  assert(worked() < 2_000);
});

test("the number and length of stop strings are limited", () => {
  assert(areWatchable(Array.from({ length: STOPS_MAX }, (_, i) => String(i))));
  assert(!areWatchable(Array.from({ length: STOPS_MAX + 1 }, (_, i) => String(i))));
  assert(!areWatchable(["x".repeat(STOP_CHARS_MAX + 1)]));
});
