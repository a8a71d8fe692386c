/** Rule 14: what a chat client has in one message of the assistant stays one message of a responses server. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("a text and a refusal of one chat message are one message of a responses server", () => {
  const said = { role: "assistant", content: "a", refusal: "no" };
  const messages = [{ role: "user", content: "q" }, said, { role: "user", content: "r" }];
  const { input } = upstreamBody("chat", { model: "m", messages }, routeTo("responses")) as { input: object[] };
  assert.deepEqual(input[1], {
    ...{ type: "message", role: "assistant" },
    content: [
      { type: "output_text", text: "a", annotations: [] },
      { type: "refusal", refusal: "no" },
    ],
  });
});
