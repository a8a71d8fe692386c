/** A client that asks for the log probabilities of no tokens gets none, in whichever protocol the model is served. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("`top_logprobs: 0` of a responses client asks a chat server for nothing", () => {
  const sent = (top_logprobs: number) =>
    upstreamBody("responses", { model: "m", input: "q", top_logprobs }, routeTo("chat"));
  assert.deepEqual([sent(0).logprobs, sent(0).top_logprobs], [undefined, undefined]);
  assert.deepEqual([sent(1).logprobs, sent(1).top_logprobs], [true, 1]);
});

test("`top_logprobs: 0` of a chat client asks a responses server for nothing, unless it asks for those of the words", () => {
  const messages = [{ role: "user", content: "q" }];
  const sent = (members: object) => upstreamBody("chat", { model: "m", messages, ...members }, routeTo("responses"));
  assert.deepEqual([sent({ top_logprobs: 0 }).include, sent({ top_logprobs: 0 }).top_logprobs], [undefined, undefined]);
  assert.deepEqual(sent({ top_logprobs: 0, logprobs: true }).include, ["message.output_text.logprobs"]);
});
