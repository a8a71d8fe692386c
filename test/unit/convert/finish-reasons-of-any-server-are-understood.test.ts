/** docs/translation-rules.md rule 43: a finish reason is read in the words of any server. */
import assert from "node:assert/strict";
import test from "node:test";
import { ChatWatcher } from "../../../src/convert/chat/watch.ts";
import { openPassthrough } from "../../../src/convert/passthrough/passthrough.ts";
import { finishOf, withOwnFinish } from "../../../src/convert/rules/finish-words.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { SseReader } from "../../../src/wire/sse.ts";
import { OWN } from "./references/rig.ts";
import { routeTo } from "./request/translate.ts";
import { clientRequest } from "./translate/rig.ts";

test("an empty or unspecified finish reason is no finish reason", () => {
  for (const word of ["", "null", "none", "FINISH_REASON_UNSPECIFIED", null, undefined, 7, {}]) {
    assert.equal(finishOf(word), undefined, String(word));
  }
});

test("of two finish reasons in one word the more severe counts, in either order", () => {
  assert.equal(finishOf("stop: SAFETY"), "refusal");
  assert.equal(finishOf("MAX_TOKENS, stop"), "output-limit");
  assert.equal(finishOf("function_call_filter: UNEXPECTED_TOOL_CALL"), "failure");
  assert.equal(finishOf("tool_calls"), "tool-calls");
  assert.equal(finishOf("ToolCalls"), "tool-calls");
});

test("a finish reason with hyphens is read like one with underscores", () => {
  assert.equal(finishOf("tool-calls"), "tool-calls");
  assert.equal(finishOf("stop-sequence"), "stop-sequence");
  assert.equal(finishOf("pause-turn"), "pause");
});

test("only the member is rewritten: text that contains the same words stays", () => {
  const said = JSON.stringify({ content: '"finish_reason":"SAFETY"', finish_reason: "SAFETY" });
  const own = JSON.stringify({ content: '"finish_reason":"SAFETY"', finish_reason: "content_filter" });
  assert.equal(
    withOwnFinish(said, "finish_reason", () => '"content_filter"'),
    own,
  );
});

for (const word of ["", "null"]) {
  test(`a stream whose chunks all have the finish reason "${word}" and that breaks off is truncated`, () => {
    const watcher = new ChatWatcher({ includeUsage: false, rename: undefined, choices: 1 });
    const reader = new SseReader();
    const chunk = { choices: [{ index: 0, delta: { content: "half" }, finish_reason: word }] };
    reader.feed(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`));
    const event = reader.next();
    assert.ok(event);
    assert.deepEqual(watcher.see(event).bytes, event.raw);
    assert.equal(watcher.finish(), undefined);
    assert.equal(watcher.fault?.code, "upstream_stream_truncated");
  });
}

/** What a watcher passes on of these chunks. */
function watched(watcher: ChatWatcher, chunks: readonly object[]): string {
  const reader = new SseReader();
  reader.feed(Buffer.from(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")));
  let out = "";
  for (let event = reader.next(); event; event = reader.next()) out += Buffer.from(watcher.see(event).bytes ?? "");
  return out;
}

test("a choice with a finish reason has ended, even if chunks without one follow", () => {
  const chunk = (delta: object, finish_reason: string | null) => ({ choices: [{ index: 0, delta, finish_reason }] });
  const chunks = [chunk({ content: "whole" }, null), chunk({}, "stop"), chunk({}, null), chunk({}, "")];
  const ended = new ChatWatcher({ includeUsage: false, rename: undefined, choices: 1 });
  assert.equal(watched(ended, chunks).match(/^data:/gm)?.length, chunks.length);
  assert.equal(Buffer.from(ended.finish() ?? "").toString(), "data: [DONE]\n\n");
  assert.equal(ended.fault, undefined);
  const cut = new ChatWatcher({ includeUsage: false, rename: undefined, choices: 1 });
  watched(cut, chunks);
  assert.equal(Buffer.from(cut.truncate(NO_USAGE)).toString(), "data: [DONE]\n\n", "one reason is enough");
});

/** What a client of the same protocol gets of a whole reply. */
function passedOn(protocol: "chat" | "messages", reply: string): string {
  const said = { model: "m", max_tokens: 50, messages: [{ role: "user", content: "hi" }] };
  const permitted = { outputLimit: undefined, strict: false };
  const exchange = openPassthrough(clientRequest(protocol, said), routeTo(protocol), permitted, OWN);
  if (isRefusal(exchange)) assert.fail(JSON.stringify(exchange));
  const read = exchange.whole(Buffer.from(reply));
  if ("reason" in read) assert.fail(read.reason);
  return Buffer.from(read.body).toString();
}

test("a tool's input keeps a member with the name of the stop reason", () => {
  const said = (word: string) =>
    `{"model":"m-upstream","content":[{"type":"tool_use","id":"t","name":"f","input":{"stop_reason":"MAX_TOKENS"}}], "stop_reason": "${word}","usage":{"input_tokens":1,"output_tokens":1}}`;
  assert.equal(besideModel(passedOn("messages", said("STOP"))), besideModel(said("end_turn")));
});

test("arguments that are an object keep such a member, and each choice gets its own finish reason", () => {
  const call = '{"id":"c","type":"function","function":{"name":"f","arguments":{"finish_reason":"SAFETY"}}}';
  const said = (one: string, two: string) =>
    `{"model":"m-upstream","choices":[ {"index":0,"finish_reason":"${one}","message":{"tool_calls":[${call}]}} ,{"index":1,"message":{"content":"x"},"finish_reason" : "${two}"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`;
  assert.equal(besideModel(passedOn("chat", said("STOP", "MAX_TOKENS"))), besideModel(said("stop", "length")));
  assert.equal(besideModel(passedOn("chat", said("stop", "SAFETY"))), besideModel(said("stop", "content_filter")));
});

/** A reply without the name of its model, which is not compared here. */
function besideModel(reply: string): string {
  return reply.replace(/^\{"model":"[^"]*",/, "{");
}
