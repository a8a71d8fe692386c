// Counts of a stream that is passed through: text after a count makes the count a snapshot, and an end without a count
// keeps the last one.
import assert from "node:assert/strict";
import test from "node:test";
import { MessagesWatcher } from "../../../../src/convert/messages/watch.ts";
import { ResponsesWatcher } from "../../../../src/convert/responses/watch.ts";
import type { SseEvent } from "../../../../src/wire/sse.ts";

const event = (payload: object) => {
  const data = Buffer.from(JSON.stringify(payload));
  return { data, raw: data } as unknown as SseEvent;
};

test("messages: text after the last count makes that count a snapshot", () => {
  const watcher = new MessagesWatcher({ rename: undefined });
  const delta = { stop_reason: "end_turn", stop_sequence: null };
  watcher.see(event({ type: "message_start", message: { usage: { input_tokens: 9, output_tokens: 1 } } }));
  watcher.see(event({ type: "message_delta", delta, usage: { output_tokens: 5 } }));
  assert.equal(watcher.counts().final, true);
  watcher.see(event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "and more" } }));
  const { final, usage } = watcher.counts();
  assert.deepEqual([final, usage?.input, usage?.output], [false, 9, 5]);
});

test("responses: an end without a count keeps the count before it", () => {
  const watcher = new ResponsesWatcher({ rename: undefined });
  const response = { id: "r", output: [] };
  const usage = { input_tokens: 9, output_tokens: 5, total_tokens: 14 };
  watcher.see(event({ type: "response.in_progress", response: { ...response, usage } }));
  watcher.see(event({ type: "response.completed", response }));
  const counts = watcher.counts();
  assert.deepEqual([counts.final, counts.usage?.input, counts.usage?.output], [true, 9, 5]);
});
