/** docs/translation-rules.md rule 43. */
import assert from "node:assert/strict";
import test from "node:test";
import { ChatWatcher } from "../../../src/convert/chat/watch.ts";
import { finishOf, withOwnFinish } from "../../../src/convert/rules/finish-words.ts";
import { SseReader } from "../../../src/wire/sse.ts";

test("words that say that nothing has ended yet are none", () => {
  for (const word of ["", "null", "none", "FINISH_REASON_UNSPECIFIED", null, undefined, 7, {}]) {
    assert.equal(finishOf(word), undefined, String(word));
  }
});

test("the graver of two reasons counts, whichever stands first", () => {
  assert.equal(finishOf("stop: SAFETY"), "refusal");
  assert.equal(finishOf("MAX_TOKENS, stop"), "output-limit");
  assert.equal(finishOf("function_call_filter: UNEXPECTED_TOOL_CALL"), "failure");
  assert.equal(finishOf("tool_calls"), "tool-calls");
  assert.equal(finishOf("ToolCalls"), "tool-calls");
});

test("a word with hyphens is the word with underscores", () => {
  assert.equal(finishOf("tool-calls"), "tool-calls");
  assert.equal(finishOf("stop-sequence"), "stop-sequence");
  assert.equal(finishOf("pause-turn"), "pause");
});

test("only members get another word: text that says the same stays", () => {
  const said = JSON.stringify({ content: '"finish_reason":"SAFETY"', finish_reason: "SAFETY" });
  const own = JSON.stringify({ content: '"finish_reason":"SAFETY"', finish_reason: "content_filter" });
  assert.equal(
    withOwnFinish(said, "finish_reason", () => '"content_filter"'),
    own,
  );
});

for (const word of ["", "null"]) {
  test(`a stream whose chunks all say "${word}" and that breaks off has not ended`, () => {
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
