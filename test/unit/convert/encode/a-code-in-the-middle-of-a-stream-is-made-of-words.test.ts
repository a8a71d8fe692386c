/**
 * docs/failure-model.md row 60: an error inside a stream shows nothing that its upstream wrote, except a code, and that
 * only if nothing else could be meant.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ChatWatcher } from "../../../../src/convert/chat/watch.ts";
import { answerOf, refusal } from "../../../../src/values/errors.ts";
import { SseReader } from "../../../../src/wire/sse.ts";

/** The code that a chat client reads after this error of its upstream. */
function codeAfter(error: object): unknown {
  const watcher = new ChatWatcher({ includeUsage: false, rename: undefined, choices: 1 });
  const [event] = new SseReader().push(Buffer.from(`data: ${JSON.stringify({ error })}\n\n`));
  assert.ok(event);
  watcher.see(event);
  const frame = watcher.fail(answerOf(refusal("upstream_rejected")), "req_1").toString();
  return JSON.parse(frame.slice("data: ".length)).error.code;
}

const type = "invalid_request_error";

test("a code of words is kept, wherever the server writes it", () => {
  assert.equal(codeAfter({ type, code: "string_above_max_length" }), "string_above_max_length");
  assert.equal(codeAfter({ type: "invalid_prompt", code: null }), "invalid_prompt");
});

test("anything else is left out", () => {
  for (const code of [
    "sk-abcdef123456",
    "https://gw.example/v1",
    "org-AbC123xyz",
    "abc 123",
    "x".repeat(49),
    "a1b2c3",
  ]) {
    assert.equal(codeAfter({ type, code }), "invalid_prompt", code);
  }
});
