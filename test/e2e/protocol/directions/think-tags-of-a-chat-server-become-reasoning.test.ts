/**
 * docs/translation-rules.md rules 27, 38 and 39, through a whole gateway, with the official clients: a chat server
 * whose reasoning is switched by `thinking`, arrives between tags in the text, and must be sent back in `reasoning`.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { listOf, modelLine, seenBody, startGateway } from "./rig.ts";

let here: GatewayHere;

const CAPABILITIES =
  "{efforts: [], reasoning_content: roundtrip, reasoning_field: reasoning, thinking_switch: thinking, thinking_in_text: tags}";

before(async () => {
  here = await startGateway({ more: modelLine("dialect", "{upstream: up-chat}", CAPABILITIES), strict: false });
});

after(() => here.close());

/** The reply's text comes in pieces that cut both tags. */
const REPLY = { text: "<think>It is sunny.</think>\n\nSunny.", deltaChars: 5 };

function sent() {
  return seenBody(here.simulator.requests.at(-1));
}

test("a messages client sees reasoning from a chat server with think tags, and sends it back", async () => {
  const { key } = await here.account();
  const sdk = new Anthropic({ baseURL: here.url, apiKey: key, maxRetries: 0 });
  const thinking = { type: "enabled", budget_tokens: 2_000 } as const;
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Weather?" }];
  here.simulator.program(REPLY);
  const body = { model: "dialect", max_tokens: 4_000, thinking, messages };
  const { content } = await sdk.messages.stream(body).finalMessage();
  assert.deepEqual(sent().thinking, { type: "enabled" });
  const shown = content.map((block) => {
    return block.type === "thinking" ? block.thinking : block.type === "text" ? block.text : "";
  });
  assert.deepEqual(shown, ["It is sunny.", "Sunny."]);
  messages.push({ role: "assistant", content }, { role: "user", content: "And tomorrow?" });
  await sdk.messages.create({ ...body, thinking: { type: "disabled" } });
  assert.deepEqual(sent().thinking, { type: "disabled" });
  const { role, ...assistant } = listOf(sent().messages)[1] ?? {};
  assert.deepEqual([role, assistant], ["assistant", { content: "Sunny.", reasoning: "It is sunny." }]);
});

test("a responses client sees reasoning from a chat server with think tags, and sends it back", async () => {
  const { key } = await here.account();
  const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: key, maxRetries: 0 });
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
  const include = ["reasoning.encrypted_content" as const];
  const body = {
    model: "dialect",
    input,
    include,
    store: false,
    reasoning: { effort: "high", summary: "auto" },
  } as const;
  here.simulator.program(REPLY);
  const { output } = await sdk.responses.stream(body).finalResponse();
  assert.deepEqual(sent().thinking, { type: "enabled" });
  assert.deepEqual(
    output.map((item) => item.type),
    ["reasoning", "message"],
  );
  input.push(...(output as OpenAI.Responses.ResponseInputItem[]), { role: "user", content: "And tomorrow?" });
  await sdk.responses.create(body);
  const { role, ...assistant } = listOf(sent().messages)[1] ?? {};
  assert.deepEqual([role, assistant], ["assistant", { content: "Sunny.", reasoning: "It is sunny." }]);
});
