/**
 * The plan of an encoded request contains everything that the translation of the reply needs to know about the client
 * (docs/translation-rules.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { ReplyPlan } from "../../../../src/convert/hub.ts";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate } from "./translate.ts";

function planOf(from: Protocol, to: Protocol, members: Body, able: Partial<Capabilities> = {}): ReplyPlan {
  const conversation = from === "responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
  const body = { model: "Big-1", max_tokens: from === "messages" ? 99 : undefined, ...conversation, ...members };
  const encoded = translate(from, body, routeTo(to, able));
  assert.ok(!isRefusal(encoded));
  return encoded.plan;
}

test("rule 1: the model's name is the one that the client typed", () => {
  const plan = planOf("chat", "messages", { stream: true });
  assert.deepEqual(
    [plan.client, plan.upstream, plan.model, plan.upstreamModel, plan.stream],
    ["chat", "messages", "Big-1", "upstream-model", true],
  );
});

test("rule 32: only a client that asked for it gets the usage chunk", () => {
  assert.equal(planOf("chat", "messages", { stream: true }).includeUsage, false);
  const asked = { stream: true, stream_options: { include_usage: true } };
  assert.equal(planOf("chat", "messages", asked).includeUsage, true);
});

test("rule 37: only a client that used the deprecated form gets it", () => {
  const functions = [{ name: "f" }];
  assert.equal(planOf("chat", "messages", { functions }).deprecatedFunctions, true);
  const tools = [{ type: "function", function: { name: "f" } }];
  assert.equal(planOf("chat", "messages", { functions, tools }).deprecatedFunctions, false);
});

test("rule 39: a messages client is shown reasoning unless it is off or omitted; what must come back is sent without text", () => {
  const seen = (thinking: Body | undefined, to: Protocol, able: Partial<Capabilities> = {}) =>
    planOf("messages", to, { thinking }, able).reasoning.visibility;
  assert.equal(seen(undefined, "chat"), "full");
  assert.equal(seen({ type: "adaptive" }, "chat"), "full");
  assert.equal(seen({ type: "disabled" }, "chat"), "none");
  assert.equal(seen({ type: "disabled" }, "responses"), "none");
  assert.equal(seen({ type: "adaptive", display: "omitted" }, "chat"), "none");
  assert.equal(seen({ type: "adaptive", display: "omitted" }, "chat", { reasoningContent: "roundtrip" }), "opaque");
  assert.equal(seen({ type: "adaptive", display: "omitted" }, "responses"), "opaque");
});

test("rule 38: messages clients get envelopes, and responses clients that include them", () => {
  assert.equal(planOf("messages", "chat", {}).reasoning.envelope, true);
  assert.equal(planOf("chat", "messages", {}).reasoning.envelope, false);
  assert.equal(planOf("responses", "chat", {}).reasoning.envelope, false);
  const include = ["reasoning.encrypted_content"];
  assert.equal(planOf("responses", "chat", { include }).reasoning.envelope, true);
});

test("rule 38: a chat server's reasoning becomes a summary only on request, and thinking always does", () => {
  assert.equal(planOf("responses", "chat", {}).reasoning.summary, false);
  assert.equal(planOf("responses", "chat", { reasoning: { summary: "auto" } }).reasoning.summary, true);
  assert.equal(planOf("responses", "messages", {}).reasoning.summary, true);
});

test("rule 45: a response object repeats members of the request, with the protocol's defaults", () => {
  const { echo } = planOf("responses", "chat", { metadata: { a: "b" }, temperature: 0.5, text: {}, instructions: "I" });
  assert.deepEqual(echo, {
    background: false,
    instructions: "I",
    max_output_tokens: null,
    metadata: { a: "b" },
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    temperature: 0.5,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
  });
});
