import assert from "node:assert/strict";
import test from "node:test";
import type { Behavior } from "../../../src/simulator/server.ts";
import { anthropicOf, openaiOf, withSimulator } from "./clients.ts";

const TEXT = "0123456789".repeat(20);
const LONG: Behavior = { text: TEXT, usage: { output: 100 } };
const user = [{ role: "user" as const, content: "hi" }];

test("chat: a limit of half the tokens gives half the text and `length`", () =>
  withSimulator(async (simulator) => {
    simulator.program(LONG, { times: 2 });
    const chat = openaiOf(simulator).chat.completions;
    const request = { model: "m", messages: user, max_completion_tokens: 50 };
    const final = await chat.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion();
    assert.equal(final.choices[0]?.finish_reason, "length");
    assert.equal(final.choices[0]?.message.content, TEXT.slice(0, 100));
    assert.equal(final.usage?.completion_tokens, 50);
    const whole = await chat.create(request);
    assert.equal(whole.choices[0]?.message.content, TEXT.slice(0, 100));
  }));

test("messages: a limit of half the tokens gives half the text and `max_tokens`; 0 gives no text", () =>
  withSimulator(async (simulator) => {
    simulator.program(LONG, { times: 2 });
    const { messages } = anthropicOf(simulator);
    const final = await messages.stream({ model: "m", max_tokens: 50, messages: user }).finalMessage();
    assert.equal(final.stop_reason, "max_tokens");
    assert.equal(final.content[0]?.type === "text" && final.content[0].text, TEXT.slice(0, 100));
    assert.equal(final.usage.output_tokens, 50);
    const warm = await messages.create({ model: "m", max_tokens: 0, messages: user });
    assert.deepEqual(warm.content, []);
    assert.equal(warm.usage.output_tokens, 0);
  }));

test("responses: a limit of half the tokens gives half the text and an incomplete response", () =>
  withSimulator(async (simulator) => {
    simulator.program(LONG);
    const { responses } = openaiOf(simulator);
    const final = await responses.stream({ model: "m", input: "hi", max_output_tokens: 50 }).finalResponse();
    assert.equal(final.status, "incomplete");
    assert.equal(final.incomplete_details?.reason, "max_output_tokens");
    assert.equal(final.output_text, TEXT.slice(0, 100));
    assert.equal(final.usage?.output_tokens, 50);
    await assert.rejects(responses.create({ model: "m", input: "hi", max_output_tokens: 15 }), { status: 400 });
  }));

test("without given counts the reply is measured at four bytes per token", () =>
  withSimulator(async (simulator) => {
    simulator.program({ text: "x".repeat(400), thinking: "y".repeat(400), tools: [{ name: "f" }] });
    const message = await anthropicOf(simulator).messages.create({ model: "m", max_tokens: 150, messages: user });
    assert.deepEqual(
      message.content.map((block) => block.type),
      ["thinking", "text"],
    );
    assert.equal(message.usage.output_tokens, 150);
    assert.equal(message.usage.output_tokens_details?.thinking_tokens, 100);
  }));

test("a behavior can ignore the limit", () =>
  withSimulator(async (simulator) => {
    simulator.program({ ...LONG, ignoreLimit: true });
    const message = await anthropicOf(simulator).messages.create({ model: "m", max_tokens: 1, messages: user });
    assert.equal(message.usage.output_tokens, 100);
  }));

test("a stop sequence ends the text before it", () =>
  withSimulator(async (simulator) => {
    simulator.program({ text: "one STOP two" }, { times: 2 });
    const message = await anthropicOf(simulator).messages.create({
      model: "m",
      max_tokens: 100,
      messages: user,
      stop_sequences: ["never", "STOP"],
    });
    assert.deepEqual([message.stop_reason, message.stop_sequence], ["stop_sequence", "STOP"]);
    assert.ok(message.content[0]?.type === "text" && message.content[0].text === "one ");
    const chat = await openaiOf(simulator).chat.completions.create({ model: "m", messages: user, stop: "STOP" });
    assert.deepEqual([chat.choices[0]?.finish_reason, chat.choices[0]?.message.content], ["stop", "one "]);
  }));

test("chat: each of `n` choices has the text, and the usage counts all of them", () =>
  withSimulator(async (simulator) => {
    simulator.program({ text: "abc", usage: { output: 7 } });
    const final = await openaiOf(simulator)
      .chat.completions.stream({ model: "m", messages: user, n: 3, stream_options: { include_usage: true } })
      .finalChatCompletion();
    assert.deepEqual(
      final.choices.map((choice) => choice.message.content),
      ["abc", "abc", "abc"],
    );
    assert.equal(final.usage?.completion_tokens, 21);
  }));
