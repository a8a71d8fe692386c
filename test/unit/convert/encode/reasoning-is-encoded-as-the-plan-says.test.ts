/** Reasoning as the client gets it (docs/translation-rules.md rule 38): text, envelope, both or nothing. */
import assert from "node:assert/strict";
import test from "node:test";
import type { ReplyItem } from "../../../../src/convert/hub-reply.ts";
import { openReasoning } from "../../../../src/convert/rules/envelope.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { countingContext } from "../translate/rig.ts";
import { accumulateMessages, accumulateResponses } from "./accumulate.ts";
import { eventsOf, planFor, replyOf, streamOf, textItem, wholeBody } from "./encoding.ts";

type Json = Record<string, unknown>;

const NATIVE = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "blob" };

function thought(text: string, opaque: string | undefined): ReplyItem {
  return { type: "reasoning", text, opaque, native: NATIVE, redacted: text === "" };
}

/** The blocks that a messages client gets, which must be the same whole and streamed. */
function blocks(upstream: Protocol, item: ReplyItem, visibility: "full" | "opaque" | "none"): Json[] {
  const plan = planFor("messages", upstream, { reasoning: { visibility, summary: true, envelope: true } });
  const reply = replyOf([item, textItem("ok")]);
  const { content } = wholeBody(plan, reply);
  assert.deepEqual(accumulateMessages(streamOf(plan, eventsOf(reply))).content, content);
  return content as Json[];
}

test("the signature of a messages client's block contains the upstream's own item", () => {
  const [block] = blocks("responses", thought("hm", "blob"), "full");
  assert.equal(block?.thinking, "hm");
  const origin = { protocol: "responses", upstreamModel: "upstream-model", account: undefined } as const;
  assert.deepEqual(openReasoning(String(block?.signature), origin, countingContext()), [NATIVE]);
});

test("a display without text still has what must go back", () => {
  const [block] = blocks("responses", thought("hm", "blob"), "opaque");
  assert.deepEqual([block?.type, block?.thinking], ["thinking", ""]);
  assert.match(String(block?.signature), /^gw1\./);
  assert.equal(
    blocks("responses", thought("hm", undefined), "opaque").length,
    1,
    "no sealed reasoning has to be returned",
  );
  assert.equal(blocks("chat", thought("hm", undefined), "opaque").length, 2, "a chat upstream needs the text returned");
});

test("reasoning is left out if thinking is off", () => {
  assert.equal(blocks("chat", thought("hm", undefined), "none").length, 1);
});

test("reasoning without text and without anything to send back gives no block", () => {
  assert.equal(blocks("responses", thought("", undefined), "full").length, 1);
  assert.equal(blocks("responses", thought("", "blob"), "full").length, 2);
});

test("a responses client gets a summary or raw text, and an envelope if it asked for one", () => {
  const item = (summary: boolean, envelope: boolean) => {
    const plan = planFor("responses", "messages", { reasoning: { visibility: "full", summary, envelope } });
    const reply = replyOf([thought("hm", "sig")]);
    const body = wholeBody(plan, reply);
    assert.deepEqual(accumulateResponses(streamOf(plan, eventsOf(reply))), body);
    return (body.output as Json[])[0];
  };
  assert.deepEqual(item(true, false)?.summary, [{ type: "summary_text", text: "hm" }]);
  assert.deepEqual(item(false, false)?.content, [{ type: "reasoning_text", text: "hm" }]);
  assert.deepEqual(item(false, false)?.summary, []);
  assert(!("encrypted_content" in (item(true, false) ?? {})));
  assert.match(String(item(true, true)?.encrypted_content), /^gw1\./);
});

test("a chat client gets text only, with a blank line between pieces of reasoning", () => {
  const reply = replyOf([thought("one", "sig"), thought("", "sig"), thought("two", undefined), textItem("ok")]);
  const [choice] = wholeBody(planFor("chat", "messages"), reply).choices as { message: Json }[];
  assert.equal(choice?.message.reasoning_content, "one\n\ntwo");
  assert(!JSON.stringify(choice).includes("gw1."));
});
