/** A message of the user without any content is still a message, which a chat server gets. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("a message of the user with an empty list of content reaches a chat server as an empty text", () => {
  const messages = [
    { role: "user", content: "q" },
    { role: "assistant", content: "a" },
    { role: "user", content: [] },
  ];
  const sent = upstreamBody("messages", { model: "m", max_tokens: 9, messages }, routeTo("chat"));
  assert.deepEqual(sent.messages, [messages[0], messages[1], { role: "user", content: "" }]);
});
