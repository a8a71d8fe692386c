/**
 * docs/translation-rules.md rules 27 and 38: which member switches the thinking of a chat server, and in which member
 * it needs its reasoning back, are capabilities of the route. The forms are those of the makers: DeepSeek and GLM
 * `thinking` (api-docs.deepseek.com/guides/thinking_mode), Qwen `enable_thinking`, servers of open models
 * `chat_template_kwargs`, OpenRouter `reasoning`; vLLM `reasoning` (github.com/vllm-project/vllm/issues/27755), Mistral
 * parts (docs.mistral.ai, reasoning), MiniMax tags in the text (its tool calling guide).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { clientRequest, countingContext } from "../translate/rig.ts";
import { routeTo, translate, upstreamBody } from "./translate.ts";

type Json = Readonly<Record<string, unknown>>;

const MEMBERS = ["reasoning_effort", "thinking", "enable_thinking", "chat_template_kwargs", "reasoning"];

/** The members that switch thinking, as the upstream gets them. */
function told(from: Protocol, wish: Json, capabilities: Partial<Capabilities>): Json {
  const turn = { role: "user", content: "q" };
  const body = from === "responses" ? { input: [turn], ...wish } : { max_tokens: 900, messages: [turn], ...wish };
  const sent = upstreamBody(from, body, routeTo("chat", capabilities));
  return Object.fromEntries(MEMBERS.filter((name) => name in sent).map((name) => [name, sent[name]]));
}

const EFFORTS = { efforts: ["low", "high"] } as const;

const ON_AND_OFF: readonly (readonly [Partial<Capabilities>, on: Json, high: Json, off: Json])[] = [
  [{ thinkingSwitch: "reasoning_effort" }, {}, { reasoning_effort: "high" }, { reasoning_effort: "low" }],
  [
    { thinkingSwitch: "thinking" },
    { thinking: { type: "enabled" } },
    { thinking: { type: "enabled" }, reasoning_effort: "high" },
    { thinking: { type: "disabled" } },
  ],
  [
    { thinkingSwitch: "enable_thinking" },
    { enable_thinking: true },
    { enable_thinking: true, reasoning_effort: "high" },
    { enable_thinking: false },
  ],
  [
    { thinkingSwitch: "chat_template_kwargs" },
    { chat_template_kwargs: { enable_thinking: true, thinking: true } },
    { chat_template_kwargs: { enable_thinking: true, thinking: true }, reasoning_effort: "high" },
    { chat_template_kwargs: { enable_thinking: false, thinking: false } },
  ],
  [
    { thinkingSwitch: "reasoning" },
    { reasoning: { enabled: true } },
    { reasoning: { effort: "high" } },
    { reasoning: { effort: "none" } },
  ],
];

for (const [capabilities, on, high, off] of ON_AND_OFF) {
  test(`${capabilities.thinkingSwitch}: thinking is switched on, set to an effort, switched off, and not mentioned without a request`, () => {
    const able = { ...EFFORTS, ...capabilities };
    assert.deepEqual(told("messages", { thinking: { type: "adaptive" } }, able), on);
    assert.deepEqual(told("messages", { output_config: { effort: "high" } }, able), high);
    assert.deepEqual(told("messages", { thinking: { type: "disabled" } }, able), off);
    assert.deepEqual(told("responses", { reasoning: { effort: "high" } }, able), high);
    assert.deepEqual(told("responses", { reasoning: { effort: "none" } }, able), off);
    for (const from of ["messages", "responses"] as const) assert.deepEqual(told(from, {}, able), {});
  });
}

test("OpenRouter gets a budget as a budget, and other servers get an effort", () => {
  const wish = { max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 5_000 } };
  assert.deepEqual(told("messages", wish, { ...EFFORTS, thinkingSwitch: "reasoning" }), {
    reasoning: { max_tokens: 5_000 },
  });
  assert.deepEqual(told("messages", wish, { ...EFFORTS, thinkingSwitch: "thinking" }), {
    thinking: { type: "enabled" },
    reasoning_effort: "low",
  });
});

test("a server without efforts is switched on, and the effort is named as dropped", () => {
  const route = routeTo("chat", { efforts: [], thinkingSwitch: "enable_thinking" });
  const encoded = translate("responses", { input: "q", reasoning: { effort: "high" } }, route);
  assert.ok(!isRefusal(encoded));
  const body = JSON.parse(Buffer.from(encoded.body).toString());
  assert.deepEqual([body.enable_thinking, body.reasoning_effort], [true, undefined]);
  assert.deepEqual(encoded.dropped, ["reasoning.effort"]);
});

test("`thinking_off: reject` refuses nothing if the server has a member that switches thinking off", () => {
  for (const thinkingSwitch of ["reasoning_effort", "thinking"] as const) {
    const route = routeTo("chat", { efforts: ["low"], thinkingOff: "reject", thinkingSwitch });
    const request = clientRequest("chat", { model: "m", messages: [], thinking: { type: "disabled" } });
    const permitted = { outputLimit: undefined, strict: false };
    const opened = openPassthrough(request, route, permitted, countingContext());
    assert.equal(isRefusal(opened), thinkingSwitch === "reasoning_effort");
  }
});

const THOUGHT = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm\n" }] };
const CALL = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
const RESULT = { type: "function_call_output", call_id: "c", output: "r" };

/** The assistant's message as the server gets it, with or without text. */
function broughtBack(reasoningField: Capabilities["reasoningField"], words: string): Json {
  const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: words }] };
  const input = [{ role: "user", content: "q" }, THOUGHT, ...(words ? [said] : []), CALL, RESULT];
  const route = routeTo("chat", { reasoningContent: "roundtrip", reasoningField });
  const { messages } = upstreamBody("responses", { input }, route) as { messages: Json[] };
  const { role: _, tool_calls, ...message } = messages[1] ?? {};
  assert.ok(tool_calls);
  return message;
}

test("reasoning goes back in the field that the server reads", () => {
  assert.deepEqual(broughtBack("reasoning_content", "a"), { content: "a", reasoning_content: "hm\n" });
  assert.deepEqual(broughtBack("reasoning", "a"), { content: "a", reasoning: "hm\n" });
  assert.deepEqual(broughtBack("reasoning", ""), { content: null, reasoning: "hm\n" });
  const part = { type: "thinking", thinking: [{ type: "text", text: "hm\n" }], closed: true };
  assert.deepEqual(broughtBack("thinking_parts", "a"), { content: [part, { type: "text", text: "a" }] });
  assert.deepEqual(broughtBack("thinking_parts", ""), { content: [part] });
  assert.deepEqual(broughtBack("think_tags", "a"), { content: "<think>\nhm\n</think>\n\na" });
});
