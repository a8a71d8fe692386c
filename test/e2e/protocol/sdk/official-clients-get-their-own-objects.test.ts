/** The official SDKs through the whole gateway: their accumulators and types judge what arrives. */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";

let here: GatewayHere;
let account: TestAccount;
let openai: OpenAI;
let anthropic: Anthropic;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
  openai = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: here.url, apiKey: account.key, maxRetries: 0 });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const TEXT = "Three words, and \u4f60\u597d \ud83d\ude00.";
const ARGUMENTS = { city: "K\u00f6ln", days: [1, 2] };
const CALL = { name: "weather", arguments: ARGUMENTS };
const USER = { role: "user", content: "hello" } as const;
const PARAMETERS = { type: "object", properties: { city: { type: "string" } } };

type OutputItem = OpenAI.Responses.ResponseOutputItem;
const isReasoning = (item: OutputItem): item is OpenAI.Responses.ResponseReasoningItem => item.type === "reasoning";
const isCall = (item: OutputItem): item is OpenAI.Responses.ResponseFunctionToolCall => item.type === "function_call";

test("chat: text, whole and streamed, with usage", async () => {
  const body = { model: "chat-1", messages: [USER] };
  here.simulator.program({ text: TEXT }, { times: 2 });
  const whole = await openai.chat.completions.create(body);
  assert.equal(whole.choices[0]?.message.content, TEXT);
  assert.ok((whole.usage?.total_tokens ?? 0) > 0);
  const stream = openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0]?.message.content, TEXT);
  assert.ok((final.usage?.total_tokens ?? 0) > 0);
});

test("chat: tool calls, whole and streamed, and their results", async () => {
  const tools = [{ type: "function" as const, function: { name: "weather", parameters: PARAMETERS } }];
  const body = { model: "chat-1", messages: [USER], tools };
  here.simulator.program({ tools: [CALL] }, { times: 2 });
  const whole = await openai.chat.completions.create(body);
  const final = await openai.chat.completions.stream(body).finalChatCompletion();
  for (const completion of [whole, final]) {
    const call = completion.choices[0]?.message.tool_calls?.[0];
    assert.ok(call?.type === "function");
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["weather", ARGUMENTS]);
    assert.equal(completion.choices[0]?.finish_reason, "tool_calls");
  }
  const message = whole.choices[0]?.message;
  assert.ok(message);
  const result = { role: "tool" as const, tool_call_id: message.tool_calls?.[0]?.id ?? "", content: "rain" };
  const next = await openai.chat.completions.create({ ...body, messages: [USER, message, result] });
  assert.ok(next.choices[0]?.message.content);
});

test("messages: text and thinking, whole and streamed", async () => {
  const body = {
    model: "messages-1",
    max_tokens: 4_000,
    thinking: { type: "enabled" as const, budget_tokens: 2_000 },
    messages: [USER],
  };
  here.simulator.program({ text: TEXT, thinking: "let me think" }, { times: 2 });
  const whole = await anthropic.messages.create(body);
  const final = await anthropic.messages.stream(body).finalMessage();
  for (const message of [whole, final]) {
    const [thought, said] = message.content;
    assert.ok(thought?.type === "thinking" && said?.type === "text");
    assert.deepEqual([thought.thinking, said.text, message.stop_reason], ["let me think", TEXT, "end_turn"]);
    assert.ok(thought.signature.length > 0 && message.usage.output_tokens > 0);
  }
});

test("messages: tool use, whole and streamed, and its result", async () => {
  const tools = [{ name: "weather", input_schema: { type: "object" as const, properties: PARAMETERS.properties } }];
  const body = { model: "messages-1", max_tokens: 4_000, messages: [USER], tools };
  here.simulator.program({ tools: [CALL] }, { times: 2 });
  const whole = await anthropic.messages.create(body);
  const final = await anthropic.messages.stream(body).finalMessage();
  for (const message of [whole, final]) {
    const use = message.content.find((block) => block.type === "tool_use");
    assert.deepEqual([use?.name, use?.input, message.stop_reason], ["weather", ARGUMENTS, "tool_use"]);
  }
  const use = whole.content.find((block) => block.type === "tool_use");
  const next = await anthropic.messages.create({
    ...body,
    messages: [
      USER,
      { role: "assistant", content: whole.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: use?.id ?? "", content: "rain" }] },
    ],
  });
  assert.ok(next.content.length > 0);
});

test("responses: text and reasoning, whole and streamed", async () => {
  const body = {
    model: "responses-1",
    input: "hello",
    reasoning: { effort: "low" as const, summary: "auto" as const },
  };
  here.simulator.program({ text: TEXT, thinking: "let me think" }, { times: 2 });
  const whole = await openai.responses.create(body);
  const final = await openai.responses.stream(body).finalResponse();
  for (const response of [whole, final]) {
    assert.deepEqual([response.status, response.output_text], ["completed", TEXT]);
    const output: readonly OutputItem[] = response.output;
    const reasoning = output.find(isReasoning);
    assert.equal(reasoning?.summary[0]?.text, "let me think");
    assert.ok((response.usage?.output_tokens_details.reasoning_tokens ?? 0) > 0);
  }
});

test("responses: function calls, whole and streamed, and their output", async () => {
  const tools = [{ type: "function" as const, name: "weather", parameters: PARAMETERS, strict: false }];
  const body = { model: "responses-1", input: "hello", tools };
  here.simulator.program({ tools: [CALL] }, { times: 2 });
  const whole = await openai.responses.create(body);
  const final = await openai.responses.stream(body).finalResponse();
  for (const response of [whole, final]) {
    const output: readonly OutputItem[] = response.output;
    const call = output.find(isCall);
    assert.deepEqual([call?.name, JSON.parse(call?.arguments ?? "")], ["weather", ARGUMENTS]);
  }
  const call = whole.output.find(isCall);
  assert.ok(call);
  const output = { type: "function_call_output" as const, call_id: call.call_id, output: "rain" };
  const next = await openai.responses.create({ ...body, input: [USER, call, output] });
  assert.ok(next.output_text);
});

test("both list the models that the key may use", async () => {
  const names: string[] = [];
  for await (const model of openai.models.list()) names.push(model.id);
  const others: string[] = [];
  for await (const model of anthropic.models.list({ limit: 2 })) others.push(model.id);
  assert.deepEqual(others, names);
  assert.ok(names.includes("chat-1") && !names.includes("pro-only"));
  assert.equal((await anthropic.models.retrieve("messages-1")).id, "messages-1");
});

test("a stream that fails in the middle is an error in every client, never a short answer", async () => {
  const fault = { endAfterEvents: 6 };
  here.simulator.program({ text: "a few words ".repeat(20), fault }, { times: 3 });
  await assert.rejects(openai.chat.completions.stream({ model: "chat-1", messages: [USER] }).finalChatCompletion());
  const body = { model: "messages-1", max_tokens: 4_000, messages: [USER] };
  await assert.rejects(anthropic.messages.stream(body).finalMessage(), Anthropic.APIError);
  await assert.rejects(openai.responses.stream({ model: "responses-1", input: "hello" }).finalResponse());
});
