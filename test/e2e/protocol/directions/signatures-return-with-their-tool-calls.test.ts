/**
 * docs/translation-rules.md rule 38: thought signatures of Gemini and OpenRouter's `reasoning_details` come back in the
 * next turn of a tool loop, unchanged and with the call that they were given with, whoever the client is. The forms are
 * the vendors' (ai.google.dev/gemini-api/docs/thought-signatures, github.com/can1357/oh-my-pi/pull/10173 for Vertex,
 * openrouter.ai/docs/guides/best-practices/reasoning-tokens, github.com/agno-agi/agno/pull/8861 for its fragments,
 * github.com/OpenRouterTeam/ai-sdk-provider/issues/519 for several of one index).
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { type Json, listOf, modelLine, modelOn, seenBody, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  const signing = modelLine("signing", "{upstream: up-chat}", "{call_signatures: google}");
  here = await startGateway({ more: signing, strict: false });
});

afterEach(() => here.simulator.clearPrograms());

after(() => here.close());

/** What a server sends in its first turn: whole, and in the deltas of a stream. */
interface Reply {
  readonly message: Json;
  readonly deltas: readonly Json[];
  /** The assistant's message as the server must receive it again, without its text. */
  readonly again: Json;
}

const call = (id: string, more: Json = {}): Json => ({
  id,
  type: "function",
  function: { name: "weather", arguments: '{"city":"Oslo"}' },
  ...more,
});

const signed = (signature: string, vendor = "google"): Json => ({
  extra_content: { [vendor]: { thought_signature: signature } },
});

/** Gemini does not number calls and sends each in one piece; of parallel ones the first is signed. */
function gemini(vendor: string): Reply {
  const calls = [call("c1", signed("EjQKMgEMOdbH+/==", vendor)), call("c2")];
  return {
    message: { role: "assistant", content: null, tool_calls: calls },
    deltas: [{ role: "assistant", tool_calls: [calls[0]] }, { tool_calls: [calls[1]] }],
    again: { tool_calls: calls },
  };
}

const DETAILS: readonly Json[] = [
  { type: "reasoning.text", text: "Let me look.", format: "anthropic-claude-v1", index: 0, signature: "Et8BCm+/=" },
  { type: "reasoning.encrypted", data: "opaque==", id: "c1", format: "google-gemini-v1", index: 1 },
];

/** As in streams of OpenAI's models: the index is 0 in each block. */
const SAME_INDEX: readonly Json[] = [
  { type: "reasoning.summary", summary: "Two steps.", format: "openai-responses-v1", index: 0, id: "rs_1" },
  { type: "reasoning.encrypted", data: "first==", id: "rs_1", format: "openai-responses-v1", index: 0 },
  { type: "reasoning.encrypted", data: "second==", id: "rs_2", format: "openai-responses-v1", index: 0 },
];

const REPLIES: Readonly<Record<string, Reply>> = {
  "Gemini's calls": gemini("google"),
  "Vertex' calls": gemini("vertex"),
  "Gemini's words": {
    message: { role: "assistant", content: "Looking.", ...signed("text+sig"), tool_calls: [call("c1", signed("s"))] },
    deltas: [
      { content: "Look", ...signed("text+sig") },
      { content: "ing." },
      { tool_calls: [call("c1", signed("s"))] },
    ],
    again: { ...signed("text+sig"), tool_calls: [call("c1", signed("s"))] },
  },
  "OpenRouter's details": {
    message: { reasoning: "Let me look.", reasoning_details: DETAILS, content: "", tool_calls: [call("c1")] },
    deltas: [
      { reasoning: "Let", reasoning_details: [{ ...DETAILS[0], text: "Let", signature: null }] },
      { reasoning: " me look.", reasoning_details: [{ type: "reasoning.text", text: " me look.", index: 0 }] },
      { content: "", reasoning_details: [{ type: "reasoning.text", signature: "Et8BCm+/=", index: 0 }] },
      { tool_calls: [{ index: 0, ...call("c1") }], reasoning_details: [DETAILS[1]] },
    ],
    again: { reasoning_details: DETAILS, tool_calls: [call("c1")] },
  },
  "OpenRouter's details of one index": {
    message: { reasoning: "Two steps.", reasoning_details: SAME_INDEX, content: "", tool_calls: [call("c1")] },
    deltas: [
      { reasoning: "Two", reasoning_details: [{ ...SAME_INDEX[0], summary: "Two" }] },
      { reasoning: " steps.", reasoning_details: [{ ...SAME_INDEX[0], summary: " steps." }] },
      { reasoning_details: [SAME_INDEX[1]] },
      { reasoning_details: [SAME_INDEX[2]] },
      { content: "", tool_calls: [{ index: 0, ...call("c1") }] },
    ],
    again: { reasoning_details: SAME_INDEX, tool_calls: [call("c1")] },
  },
  "a signature of the second call": {
    message: { content: null, tool_calls: [call("c1"), call("c2", signed("second"))] },
    deltas: [{ tool_calls: [call("c1"), call("c2", signed("second"))] }],
    again: { tool_calls: [call("c1"), call("c2", signed("second"))] },
  },
  "a signature that comes after its call": {
    message: { content: null, tool_calls: [call("c1", signed("late"))] },
    deltas: [
      { tool_calls: [{ index: 0, ...call("c1"), function: { name: "weather", arguments: "" } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":"Oslo"}' }, ...signed("late") }] },
    ],
    again: { tool_calls: [call("c1", signed("late"))] },
  },
  "signatures that come after both calls, the first one last": {
    message: { content: null, tool_calls: [call("c1", signed("one")), call("c2", signed("two"))] },
    deltas: [
      { tool_calls: [{ index: 0, ...call("c1") }] },
      { tool_calls: [{ index: 1, ...call("c2") }] },
      { tool_calls: [{ index: 1, ...signed("two") }] },
      { tool_calls: [{ id: "c1", ...signed("one") }] },
    ],
    again: { tool_calls: [call("c1", signed("one")), call("c2", signed("two"))] },
  },
  "signatures of two calls that share an id": {
    message: { content: null, tool_calls: [call("c1", signed("one")), call("c1", signed("two"))] },
    deltas: [
      { tool_calls: [{ index: 0, ...call("c1", signed("one")) }] },
      { tool_calls: [{ index: 1, ...call("c1") }] },
      { tool_calls: [{ index: 1, ...signed("two") }] },
    ],
    again: { tool_calls: [call("c1", signed("one")), call("a new one", signed("two"))] },
  },
  "a signature after a call that has no name": {
    message: { content: null, tool_calls: [{ id: "c0", function: {} }, call("", signed("own"))] },
    deltas: [{ tool_calls: [call("", signed("own"))] }],
    again: { tool_calls: [call("a new one", signed("own"))] },
  },
};

function program(reply: Reply): void {
  const choice = (members: Json) => ({ data: { id: "x", choices: [{ index: 0, ...members }] } });
  here.simulator.program({
    body: {
      id: "x",
      object: "chat.completion",
      choices: [{ index: 0, message: reply.message, finish_reason: "stop" }],
    },
    frames: [
      ...reply.deltas.map((delta) => choice({ delta, finish_reason: null })),
      choice({ delta: {}, finish_reason: "stop" }),
      { data: { id: "x", choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } } },
      { data: "[DONE]" },
    ],
  });
}

type Loop = (key: string, model: string, stream: boolean) => Promise<void>;

/** A messages client that answers all calls and sends the next turn, with thinking as its request says. */
function messagesLoop(thinking: Anthropic.ThinkingConfigParam | undefined): Loop {
  return async (apiKey, model, stream) => {
    const sdk = new Anthropic({ baseURL: here.url, apiKey, maxRetries: 0 });
    const tools: Anthropic.Tool[] = [{ name: "weather", input_schema: { type: "object" } }];
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Weather?" }];
    const body = { model, max_tokens: 4000, tools, messages, ...(thinking && { thinking }) };
    const { content } = stream ? await sdk.messages.stream(body).finalMessage() : await sdk.messages.create(body);
    const isEmpty = content.every((block) => block.type !== "thinking" || block.thinking === "");
    if (thinking?.type === "disabled") assert.ok(isEmpty, "thinking is not shown when it is disabled");
    const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
      block.type === "tool_use" ? [{ type: "tool_result", tool_use_id: block.id, content: "rain" }] : [],
    );
    messages.push({ role: "assistant", content }, { role: "user", content: results });
    await sdk.messages.create(body);
  };
}

function responsesLoop(include: OpenAI.Responses.ResponseIncludable[]): Loop {
  return async (apiKey, model, stream) => {
    const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 0 });
    const parameters = { type: "object" };
    const tools: OpenAI.Responses.Tool[] = [{ type: "function", name: "weather", parameters, strict: false }];
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
    const body = { model, tools, input, include, store: false };
    const { output } = stream ? await sdk.responses.stream(body).finalResponse() : await sdk.responses.create(body);
    if (include.length === 0) assert.ok(output.every((item) => item.type !== "reasoning" || item.summary.length > 0));
    input.push(...(output as OpenAI.Responses.ResponseInputItem[]));
    for (const item of output) {
      if (item.type === "function_call")
        input.push({ type: "function_call_output", call_id: item.call_id, output: "rain" });
    }
    await sdk.responses.create(body);
  };
}

const CLIENTS: Readonly<Record<string, Loop>> = {
  "a messages client that thinks": messagesLoop({ type: "enabled", budget_tokens: 2000 }),
  "a messages client that does not mention thinking": messagesLoop(undefined),
  "a messages client that omits thinking": messagesLoop({ type: "adaptive", display: "omitted" }),
  "a messages client that does not think": messagesLoop({ type: "disabled" }),
  "a responses client": responsesLoop(["reasoning.encrypted_content"]),
};

/** The assistant's message of the second turn, as the server received it. */
function broughtBack(): Json {
  const { messages } = seenBody(here.simulator.requests.at(-1));
  const assistant = listOf(messages).find((message) => message.role === "assistant");
  assert.ok(assistant, "the server received the assistant message");
  return assistant;
}

/** The message with the gateway's own ids replaced by a fixed word. */
function withKnownIds(message: Json): Json {
  if (message.tool_calls === undefined) return message;
  const known = (id: unknown) => (id === "c1" || id === "c2" ? id : "a new one");
  return { ...message, tool_calls: listOf(message.tool_calls).map((one) => ({ ...one, id: known(one.id) })) };
}

for (const [client, loop] of Object.entries(CLIENTS)) {
  for (const [what, reply] of Object.entries(REPLIES)) {
    for (const stream of [false, true]) {
      test(`${what} come back from ${client}, ${stream ? "streamed" : "whole"}`, async () => {
        const { key } = await here.account();
        program(reply);
        await loop(key, modelOn("chat"), stream);
        const { role, content, ...again } = broughtBack();
        assert.equal(role, "assistant");
        assert.deepEqual(withKnownIds(again), reply.again);
        assert.equal(content, reply.message.content || null);
      });
    }
  }
}

test("a client that cannot carry signatures gets none, and the server gets the vendor's placeholder for calls without", async () => {
  const { key } = await here.account();
  program(gemini("google"));
  await responsesLoop([])(key, "signing", true);
  const [first, second] = listOf(broughtBack().tool_calls);
  assert.deepEqual(first?.extra_content, { google: { thought_signature: "skip_thought_signature_validator" } });
  assert.equal(second?.extra_content, undefined);
});

test("a call that has its signature gets no placeholder", async () => {
  const { key } = await here.account();
  program(gemini("google"));
  await responsesLoop(["reasoning.encrypted_content"])(key, "signing", true);
  assert.deepEqual(listOf(broughtBack().tool_calls), gemini("google").again.tool_calls);
});

test("signatures of one model are not sent to another", async () => {
  const { key } = await here.account();
  program(gemini("google"));
  const sdk = new Anthropic({ baseURL: here.url, apiKey: key, maxRetries: 0 });
  const ask = (model: string, messages: Anthropic.MessageParam[]) =>
    sdk.messages.create({ model, max_tokens: 900, messages });
  const { content } = await ask(modelOn("chat"), [{ role: "user", content: "Weather?" }]);
  const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
    block.type === "tool_use" ? [{ type: "tool_result", tool_use_id: block.id, content: "rain" }] : [],
  );
  await ask("signing", [
    { role: "user", content: "Weather?" },
    { role: "assistant", content },
    { role: "user", content: results },
  ]);
  const text = JSON.stringify(broughtBack());
  assert.ok(!text.includes("EjQKMg"), text);
});
