/** docs/errors.md, *When a stream fails*: by the code at the end of a stream, clients retry or do not. */
import assert from "node:assert/strict";
import test from "node:test";
import { ChatWatcher } from "../../../../src/convert/chat/watch.ts";
import { MessagesWatcher } from "../../../../src/convert/messages/watch.ts";
import { ResponsesWatcher } from "../../../../src/convert/responses/watch.ts";
import type { Watcher } from "../../../../src/convert/watch.ts";
import { answerOf, refusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { SseReader } from "../../../../src/wire/sse.ts";

const WATCHERS: Readonly<Record<Protocol, () => Watcher>> = {
  chat: () => new ChatWatcher({ includeUsage: false, rename: undefined, choices: 1 }),
  messages: () => new MessagesWatcher({ rename: undefined }),
  responses: () => new ResponsesWatcher({ rename: undefined }),
};

/** What the client's stream says at its end after this error event of the upstream. */
function told(protocol: Protocol, type: string, code: string): string {
  const watcher = WATCHERS[protocol]();
  const reader = new SseReader();
  const error =
    protocol === "responses" ? { type: "error", code } : { type: "error", error: { type, code, message: "x" } };
  reader.feed(Buffer.from(`data: ${JSON.stringify(error)}\n\n`));
  const event = reader.next();
  assert.ok(event);
  watcher.see(event);
  assert.ok(watcher.fault);
  return watcher.fail(answerOf(refusal(watcher.fault.cause)), "req_1").toString();
}

test("an overload is retried: by Codex as server_error, by messages clients as overloaded_error", () => {
  const responses = told("responses", "", "server_is_overloaded");
  assert.equal(responses.match(/"code":"server_error"/g)?.length, 3, "in both events, and in the first one's object");
  assert.doesNotMatch(responses, /server_is_overloaded/);
  assert.match(told("messages", "overloaded_error", ""), /"error":\{"type":"overloaded_error"/);
  assert.match(told("messages", "api_error", ""), /"error":\{"type":"overloaded_error"/);
});

test("an error of the request itself is not retried", () => {
  for (const [code, final] of [
    ["context_length_exceeded", "context_length_exceeded"],
    ["invalid_prompt", "invalid_prompt"],
    ["invalid_image_url", "invalid_prompt"],
  ] as const) {
    assert.equal(told("responses", "", code).split(`"code":"${final}"`).length, 4, code);
  }
  assert.match(told("messages", "invalid_request_error", ""), /"error":\{"type":"invalid_request_error"/);
});

test("a rate limit keeps its code, by which Codex waits", () => {
  assert.match(told("responses", "", "rate_limit_exceeded"), /"code":"rate_limit_exceeded"/);
});
