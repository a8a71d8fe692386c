/**
 * docs/translation-rules.md rule 38: reasoning goes back byte for byte to the upstream that produced it, or not at all,
 * and never to another one.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { sealReasoning } from "../../../../src/convert/rules/envelope.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { CONTEXT, routeTo, translate, UPSTREAM_MODEL, upstreamBody } from "./translate.ts";

const THINKING = { type: "thinking", thinking: "h\u00e4 \ud83d\ude00", signature: "EqQB+/=" };
const REDACTED = { type: "redacted_thinking", data: "Emw==" };

function sealed(protocol: Protocol, native: readonly unknown[], upstreamModel = UPSTREAM_MODEL): string {
  return sealReasoning(native, { protocol, upstreamModel, account: undefined }, CONTEXT);
}

function reasoningItem(encrypted_content: string | null) {
  return { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "s" }], encrypted_content };
}

const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "a" }] };
const input = (...items: object[]) => ({
  input: [{ role: "user", content: "q" }, ...items, { role: "user", content: "r" }],
});

function assistantOf(items: readonly object[]): unknown {
  const { messages } = upstreamBody("responses", input(...items), routeTo("messages")) as { messages: unknown[] };
  return (messages[1] as { content: unknown }).content;
}

test("rule 38: an envelope of the gateway is replaced by the original blocks, byte for byte", () => {
  const items = [reasoningItem(sealed("messages", [THINKING])), reasoningItem(sealed("messages", [REDACTED])), said];
  assert.deepEqual(assistantOf(items), [THINKING, REDACTED, { type: "text", text: "a" }]);
});

const GONE: readonly (readonly [string, string | null])[] = [
  ["another vendor's", "gAAAAABo"],
  ["broken", "gw1.AAAA"],
  ["another protocol's", sealed("responses", [{ type: "reasoning", id: "x", summary: [] }])],
  ["another model's", sealed("messages", [THINKING], "other-model")],
  ["missing", null],
];
for (const [whose, opaque] of GONE) {
  test(`rule 38: ${whose} reasoning is left out without an error, and so is the other thinking of its turn`, () => {
    assert.deepEqual(assistantOf([reasoningItem(opaque), said]), [{ type: "text", text: "a" }]);
    const mixed = [reasoningItem(sealed("messages", [THINKING])), reasoningItem(opaque), said];
    assert.deepEqual(assistantOf(mixed), [{ type: "text", text: "a" }]);
  });
}

const turn = (...content: object[]) => ({
  max_tokens: 100,
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", content: [...content, { type: "text", text: "a" }] },
    { role: "user", content: "r" },
  ],
});

test("rule 38: a thinking block with an envelope of the gateway becomes the original reasoning item", () => {
  const item = { type: "reasoning", id: "rs_9", summary: [], encrypted_content: "gAAAA" };
  const block = { type: "thinking", thinking: "", signature: sealed("responses", [item]) };
  const { input: items } = upstreamBody("messages", turn(block), routeTo("responses")) as { input: unknown[] };
  assert.deepEqual(items[1], item);
  const foreign = upstreamBody("messages", turn({ ...block, signature: "EqQB" }), routeTo("responses"));
  assert.equal((foreign.input as unknown[]).length, 3);
});

test("reasoning with nothing after it is left out, because its vendor refuses it", () => {
  const item = { type: "reasoning", id: "rs_9", summary: [], encrypted_content: "gAAAA" };
  const block = { type: "thinking", thinking: "", signature: sealed("responses", [item]) };
  const body = {
    max_tokens: 9,
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content: [block] },
      { role: "user", content: "r" },
    ],
  };
  const { input: items } = upstreamBody("messages", body, routeTo("responses")) as { input: unknown[] };
  assert.equal(items.length, 2);
});

function reasoningContent(from: Protocol, body: object, able: "read" | "roundtrip" = "roundtrip"): unknown {
  const sent = upstreamBody(from, body as Record<string, unknown>, routeTo("chat", { reasoningContent: able }));
  return (sent.messages as { reasoning_content?: unknown }[])[1]?.reasoning_content;
}

test("rule 38: a roundtrip chat upstream gets its text back from either client, and other upstreams get none", () => {
  const envelope = sealed("chat", ["th", "ink"]);
  const block = { type: "thinking", thinking: "", signature: envelope };
  assert.equal(reasoningContent("messages", turn(block)), "th\n\nink");
  assert.equal(reasoningContent("messages", turn(block), "read"), undefined);
  assert.equal(reasoningContent("messages", turn({ ...block, thinking: "x", signature: "EqQB" })), undefined);
  assert.equal(reasoningContent("responses", input(reasoningItem(envelope), said)), "th\n\nink");
  assert.equal(reasoningContent("responses", input(reasoningItem("gAAAA"), said)), undefined);
});

test("rule 38: reasoning that was never encrypted is sent as the client wrote it", () => {
  const item = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm" }] };
  assert.equal(reasoningContent("responses", input(item, said)), "hm");
});

test("rule 38: a chat client's plain reasoning is dropped, and an envelope is opened", () => {
  const body = (reasoning_content: string) => ({
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content: "a", reasoning_content },
      { role: "user", content: "r" },
    ],
  });
  const blocks = (text: string) =>
    (upstreamBody("chat", body(text), routeTo("messages")).messages as { content: unknown[] }[])[1]?.content;
  assert.deepEqual(blocks("hm"), [{ type: "text", text: "a" }]);
  assert.deepEqual(blocks(sealed("messages", [THINKING])), [THINKING, { type: "text", text: "a" }]);
  assert.equal((upstreamBody("chat", body("hm"), routeTo("responses")).input as unknown[]).length, 3);
});

test("rule 38: an envelope without an account is not opened on a route whose thinking is bound to one", () => {
  const body = input(reasoningItem(sealed("messages", [THINKING])), said);
  const { messages } = upstreamBody("responses", body, routeTo("messages", { accountBoundThinking: true }));
  assert.deepEqual((messages as { content: unknown }[])[1]?.content, [{ type: "text", text: "a" }]);
});

/** What a chat server needs back in addition to its text. */
const WITH_DETAILS = { text: "hm", details: [{ type: "reasoning.text", text: "hm", signature: "s" }], calls: [] };

test("rule 38: another chat model gets the text of signed reasoning, without the signature", () => {
  const block = { type: "thinking", thinking: "", signature: sealed("chat", [WITH_DETAILS], "other-model") };
  const sent = upstreamBody("messages", turn(block), routeTo("chat", { reasoningContent: "roundtrip" }));
  const { content, reasoning_content, reasoning_details } = (sent.messages as Record<string, unknown>[])[1] ?? {};
  assert.deepEqual([content, reasoning_content, reasoning_details], ["a", "hm", undefined]);
});

test("reasoning that goes back as details is not named as left out", () => {
  const ignored = (upstreamModel: string) => {
    const block = { type: "thinking", thinking: "", signature: sealed("chat", [WITH_DETAILS], upstreamModel) };
    const encoded = translate("messages", turn(block), routeTo("chat"));
    assert.ok(!isRefusal(encoded));
    return encoded.ignored;
  };
  assert.deepEqual(ignored(UPSTREAM_MODEL), []);
  assert.deepEqual(ignored("other-model"), ["messages.content.thinking"]);
});
