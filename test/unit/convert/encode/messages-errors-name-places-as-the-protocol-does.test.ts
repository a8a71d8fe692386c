import assert from "node:assert/strict";
import test from "node:test";
import { renderError } from "../../../../src/convert/error.ts";
import { answerOf, refusal } from "../../../../src/values/errors.ts";

const PLACES = [
  ["messages[0].content[12].source.file_id", "messages.0.content.12.source.file_id"],
  ["messages.0.content.1", "messages.0.content.1"],
  ["source[].url", "source[].url"],
] as const;

for (const [param, shown] of PLACES) {
  test(`the message of a fault at ${param} begins with ${shown}`, () => {
    const body = JSON.parse(renderError("messages", answerOf(refusal("wrong_type", { param })), "req_1"));
    assert.ok(body.error.message.startsWith(`${shown}: `), body.error.message);
    const chat = JSON.parse(renderError("chat", answerOf(refusal("wrong_type", { param })), "req_1"));
    assert.equal(chat.error.param, param);
  });
}
