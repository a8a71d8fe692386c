import assert from "node:assert/strict";
import test from "node:test";
import { anthropicOf, openaiOf, withSimulator } from "./clients.ts";

const TEXT = "Grüße 👋 from a simulation, in more than one delta.";
const THINKING = "Two steps: think 🤔, then speak.";
const USAGE = { input: 10, cached: 5, cacheWrite: 3, cacheWrite1h: 2, output: 40, reasoning: 7 };

test("chat: the SDK reads text, usage and the end", () =>
  withSimulator(async (simulator) => {
    simulator.program({ text: TEXT, thinking: THINKING, usage: USAGE, pings: 2, obfuscation: true });
    const stream = openaiOf(simulator).chat.completions.stream({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      stream_options: { include_usage: true },
    });
    let reasoning = "";
    stream.on("chunk", (chunk) => {
      reasoning += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
    });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0]?.message.content, TEXT);
    assert.equal(final.choices[0]?.finish_reason, "stop");
    assert.equal(reasoning, THINKING);
    assert.equal(final.usage?.prompt_tokens, 20);
    assert.equal(final.usage?.completion_tokens, 40);
    assert.equal(final.usage?.total_tokens, 60);
    assert.equal(final.usage?.prompt_tokens_details?.cached_tokens, 5);
    assert.equal(final.usage?.prompt_tokens_details?.cache_write_tokens, 5);
    assert.equal(final.usage?.completion_tokens_details?.reasoning_tokens, 7);
  }));

test("messages: the SDK reads thinking with its signature, redacted thinking, texts and usage", () =>
  withSimulator(async (simulator) => {
    simulator.program({ texts: [TEXT, "second"], thinking: THINKING, redacted: "c2VjcmV0", usage: USAGE, pings: 2 });
    const final = await anthropicOf(simulator)
      .messages.stream({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }] })
      .finalMessage();
    const [thinking, redacted, first, second] = final.content;
    assert.ok(thinking?.type === "thinking" && thinking.thinking === THINKING && thinking.signature.length > 20);
    assert.deepEqual(redacted, { type: "redacted_thinking", data: "c2VjcmV0" });
    assert.ok(first?.type === "text" && first.text === TEXT);
    assert.ok(second?.type === "text" && second.text === "second");
    assert.equal(final.stop_reason, "end_turn");
    assert.equal(final.usage.input_tokens, 10);
    assert.equal(final.usage.cache_read_input_tokens, 5);
    assert.equal(final.usage.cache_creation_input_tokens, 5);
    assert.deepEqual(final.usage.cache_creation, { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 2 });
    assert.equal(final.usage.output_tokens, 40);
    assert.equal(final.usage.output_tokens_details?.thinking_tokens, 7);
  }));

for (const rawReasoning of [false, true]) {
  test(`responses: the SDK reads reasoning (raw ${rawReasoning}), encrypted content, text and usage`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ text: TEXT, thinking: THINKING, rawReasoning, usage: USAGE, pings: 2, obfuscation: true });
      const final = await openaiOf(simulator)
        .responses.stream({ model: "m", input: "hi", include: ["reasoning.encrypted_content"] })
        .finalResponse();
      const [reasoning, message] = final.output;
      assert.ok(reasoning?.type === "reasoning" && reasoning.encrypted_content);
      const shown = rawReasoning ? reasoning.content?.[0]?.text : reasoning.summary[0]?.text;
      assert.equal(shown, THINKING);
      assert.equal(message?.type, "message");
      assert.equal(final.output_text, TEXT);
      assert.equal(final.status, "completed");
      assert.equal(final.usage?.input_tokens, 20);
      assert.equal(final.usage?.input_tokens_details.cached_tokens, 5);
      assert.equal(final.usage?.input_tokens_details.cache_write_tokens, 5);
      assert.equal(final.usage?.output_tokens_details.reasoning_tokens, 7);
      assert.equal(final.usage?.total_tokens, 60);
    }));
}

test("responses: several texts are separate items, or parts of one item", () =>
  withSimulator(async (simulator) => {
    for (const oneItem of [false, true]) {
      simulator.program({ texts: ["a", "b"], oneItem, redacted: "c2VhbGVk" });
      const final = await openaiOf(simulator).responses.stream({ model: "m", input: "hi" }).finalResponse();
      assert.equal(final.output_text, "ab");
      assert.equal(final.output.length, oneItem ? 2 : 3);
      assert.ok(final.output[0]?.type === "reasoning" && final.output[0].encrypted_content === "c2VhbGVk");
    }
  }));
