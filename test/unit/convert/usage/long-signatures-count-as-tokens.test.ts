/**
 * docs/decisions/what-a-disconnect-costs.md: a signature that is long enough to hold sealed reasoning counts as one token
 * for four characters if the upstream reports no count, in every place where chat servers have one, streamed and whole
 * alike.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ChatOutput, countChoices } from "../../../../src/convert/chat/produced.ts";
import type { JsonObject } from "../../../../src/values/json-object.ts";

const CHARS = 40_000;
const LONG = "QUJD".repeat(CHARS / 4);

const call = (more: JsonObject, inner: JsonObject = {}): JsonObject => ({
  tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "{}", ...inner }, ...more }],
});

/** The members of a message or delta that hold a signature. */
const PLACES: Readonly<Record<string, (signature: string) => JsonObject>> = {
  "message, Gemini": (s) => ({ extra_content: { google: { thought_signature: s } } }),
  "message, Vertex": (s) => ({ extra_content: { vertex: { thought_signature: s } } }),
  "message, LiteLLM": (s) => ({ provider_specific_fields: { thought_signatures: [s] } }),
  message: (s) => ({ thought_signature: s }),
  "message's function": (s) => ({ function: { name: "f", thought_signature: s } }),
  details: (s) => ({ reasoning_details: [{ type: "reasoning.text", index: 0, text: "", signature: s }] }),
  blocks: (s) => ({ thinking_blocks: [{ type: "thinking", thinking: "", signature: s }] }),
  "call, Gemini": (s) => call({ extra_content: { google: { thought_signature: s } } }),
  "call, LiteLLM": (s) => call({ provider_specific_fields: { thought_signature: s } }),
  "function, LiteLLM": (s) => call({}, { provider_specific_fields: { thought_signature: s } }),
  call: (s) => call({ thought_signature: s }),
  "under two names": (s) =>
    call({ thought_signature: s, extra_content: { google: { thought_signature: s } }, provider_specific_fields: {} }),
};

/** The tokens that are counted for a whole message and for the same content as a delta. */
function counted(beside: JsonObject): readonly [whole: number, streamed: number] {
  const text = { role: "assistant", content: "hi" };
  const stream = new ChatOutput();
  stream.see(undefined, { choices: [{ index: 0, delta: text }] });
  stream.see(undefined, { choices: [{ index: 0, delta: beside }] });
  return [countChoices([{ message: { ...text, ...beside } }]).tokens, stream.counts().tokens];
}

for (const [place, beside] of Object.entries(PLACES)) {
  test(`${place}: a long signature counts once, and a short one does not count`, () => {
    const [none] = counted(beside(""));
    assert.deepEqual(counted(beside("QUJD".repeat(256))), [none, none]);
    const [whole, streamed] = counted(beside(LONG));
    assert.equal(whole, streamed);
    assert.ok(Math.abs(whole - none - CHARS / 4) <= 1, `${whole}`);
  });
}
