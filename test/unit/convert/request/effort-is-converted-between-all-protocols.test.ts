/** docs/translation-rules.md rule 27: for each effort that a client asks for, what the upstream gets. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, upstreamBody } from "./translate.ts";

type SentThinking = { readonly thinking?: Body; readonly effort?: string };
type Thinking = Capabilities["thinking"];
const ALL = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
const ADAPTIVE = { type: "adaptive" };
const budget = (tokens: number) => ({ thinking: { type: "enabled", budget_tokens: tokens } });

const TO_MESSAGES: readonly (readonly [effort: string | undefined, mode: Thinking, told: SentThinking])[] = [
  [undefined, "adaptive", {}],
  [undefined, "budget", {}],
  ["none", "adaptive", { thinking: { type: "disabled" } }],
  ["none", "both", { thinking: { type: "disabled" } }],
  ["none", "between", { thinking: { type: "between_tools" } }],
  ["none", "always", { effort: "low" }],
  ["none", "budget", {}],
  ["none", "none", {}],
  ["minimal", "adaptive", { thinking: ADAPTIVE, effort: "low" }],
  ["minimal", "always", { effort: "low" }],
  ["minimal", "budget", budget(1024)],
  ["medium", "between", { thinking: ADAPTIVE, effort: "medium" }],
  ["low", "budget", budget(4096)],
  ["medium", "budget", budget(10_240)],
  ["high", "budget", budget(24_576)],
  ["xhigh", "both", { thinking: ADAPTIVE, effort: "high" }],
  ["max", "always", { effort: "high" }],
  ["high", "none", {}],
];

for (const [effort, mode, told] of TO_MESSAGES) {
  test(`chat ${effort ?? "without effort"} to a messages model with thinking ${mode}`, () => {
    const body = { messages: [{ role: "user", content: "hi" }], reasoning_effort: effort };
    const permitted = { outputLimit: 32_000, strict: false };
    assert.deepEqual(
      sentThinkingOf(upstreamBody("chat", body, routeTo("messages", { thinking: mode }), permitted)),
      told,
    );
  });
}

function sentThinkingOf(body: Record<string, unknown>): SentThinking {
  const effort = (body.output_config as { effort?: string } | undefined)?.effort;
  return { ...(body.thinking ? { thinking: body.thinking as Body } : {}), ...(effort ? { effort } : {}) };
}

test("xhigh stays xhigh if the model has it", () => {
  const body = { messages: [{ role: "user", content: "hi" }], reasoning_effort: "xhigh" };
  const route = routeTo("messages", { thinking: "adaptive", efforts: ["low", "high", "xhigh"] });
  assert.equal(sentThinkingOf(upstreamBody("chat", body, route)).effort, "xhigh");
});

test("a budget never raises the limit above what is held", () => {
  const body = { messages: [{ role: "user", content: "hi" }], reasoning_effort: "medium" };
  const sent = upstreamBody("chat", body, routeTo("messages", { thinking: "budget" }));
  assert.equal(sent.max_tokens, 8192);
  assert.deepEqual(sent.thinking, { type: "enabled", budget_tokens: 8192 - 1024 });
});

test("a lowered limit lowers the budget", () => {
  const body = { messages: [{ role: "user", content: "hi" }], reasoning_effort: "medium" };
  const route = routeTo("messages", { thinking: "budget" });
  const sent = upstreamBody("chat", body, route, { outputLimit: 3000, strict: false });
  assert.equal(sent.max_tokens, 3000);
  assert.deepEqual(sent.thinking, { type: "enabled", budget_tokens: 1976 });
});

const OFF: readonly (readonly [Protocol, Body])[] = [
  ["chat", { reasoning_effort: "none" }],
  ["chat", { enable_thinking: false }],
  ["chat", { chat_template_kwargs: { enable_thinking: false } }],
  ["chat", { thinking: { type: "disabled" } }],
  ["messages", { thinking: { type: "disabled" } }],
  ["messages", { thinking: { type: "between_tools" } }],
  ["responses", { reasoning: { effort: "none", summary: "auto" } }],
];

for (const [from, members] of OFF) {
  const conversation = from === "responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
  const body = { ...conversation, max_tokens: from === "messages" ? 9 : undefined, ...members };
  test(`${from} switches reasoning off with ${JSON.stringify(members)} for every protocol`, () => {
    const words = (to: Protocol, able: Partial<Capabilities>) => upstreamBody(from, body, routeTo(to, able));
    assert.deepEqual(words("messages", { thinking: "adaptive" }).thinking, { type: "disabled" });
    assert.equal(words("chat", { efforts: ALL }).reasoning_effort, "none");
    assert.equal(words("chat", { efforts: ["low", "high"] }).reasoning_effort, "low");
    assert.equal(words("chat", { efforts: [] }).reasoning_effort, undefined);
    assert.deepEqual(words("responses", { efforts: ALL }).reasoning, { effort: "none" });
    assert.deepEqual(words("responses", { efforts: ["minimal", "low"] }).reasoning, { effort: "minimal" });
  });
}

const FROM_MESSAGES: readonly (readonly [members: Body, effort: string | undefined])[] = [
  [{ thinking: { type: "enabled", budget_tokens: 2000 } }, "low"],
  [{ thinking: { type: "enabled", budget_tokens: 16_383 } }, "medium"],
  [{ thinking: { type: "enabled", budget_tokens: 16_384 } }, "high"],
  [{ thinking: { type: "enabled", budget_tokens: 32_767 } }, "high"],
  [{ thinking: { type: "enabled", budget_tokens: 32_768 } }, "xhigh"],
  [{ thinking: { type: "enabled", budget_tokens: 40_000 } }, "xhigh"],
  [{ thinking: { type: "enabled", budget_tokens: 2000 }, output_config: { effort: "max" } }, "max"],
  [{ thinking: { type: "adaptive" } }, undefined],
  [{}, undefined],
];

for (const [members, effort] of FROM_MESSAGES) {
  test(`messages ${JSON.stringify(members)} is effort ${effort}`, () => {
    const body = { max_tokens: 9, messages: [{ role: "user", content: "hi" }], ...members };
    assert.equal(upstreamBody("messages", body, routeTo("chat", { efforts: ALL })).reasoning_effort, effort);
  });
}

test("rule 27: summaries are requested unless display is omitted, and encrypted reasoning whenever the model reasons", () => {
  const ask = (members: Body, efforts: readonly (typeof ALL)[number][] = ALL) => {
    const body = { max_tokens: 9, messages: [{ role: "user", content: "hi" }], ...members };
    const { reasoning, include } = upstreamBody("messages", body, routeTo("responses", { efforts }));
    return { reasoning, include };
  };
  const include = ["reasoning.encrypted_content"];
  const effort = "high";
  assert.deepEqual(ask({}), { reasoning: undefined, include });
  assert.deepEqual(ask({ thinking: { type: "adaptive" } }), { reasoning: { summary: "auto" }, include });
  assert.deepEqual(ask({ thinking: { type: "adaptive", display: "omitted" } }), { reasoning: undefined, include });
  assert.deepEqual(ask({ thinking: { type: "adaptive", display: "omitted" }, output_config: { effort } }), {
    reasoning: { effort },
    include,
  });
  assert.deepEqual(ask({ thinking: { type: "adaptive" } }, []), { reasoning: undefined, include: undefined });
});

test("rule 27 display: requested with a summary, and always if the model reports progress in its thinking", () => {
  const shown = { type: "adaptive", display: "summarized" };
  const asks = { input: "hi", reasoning: { summary: "auto" } };
  assert.deepEqual(upstreamBody("responses", asks, routeTo("messages", { thinking: "always" })).thinking, shown);
  const plain = { messages: [{ role: "user", content: "hi" }] };
  const progress = routeTo("messages", { thinking: "between", progressInThinking: true });
  assert.deepEqual(upstreamBody("chat", plain, progress).thinking, shown);
  assert.deepEqual(upstreamBody("chat", { ...plain, reasoning_effort: "none" }, progress).thinking, {
    type: "between_tools",
  });
});

test("rule 27: no budget is sent with a forced tool, or in a loop whose thinking is missing", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const base = { tools, reasoning_effort: "high", messages: [{ role: "user", content: "hi" }] };
  const route = routeTo("messages", { thinking: "budget" });
  assert.ok(upstreamBody("chat", base, route).thinking);
  assert.equal(upstreamBody("chat", { ...base, tool_choice: "required" }, route).thinking, undefined);
  const loop = [
    { role: "user", content: "hi" },
    { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f" } }] },
    { role: "tool", tool_call_id: "a", content: "1" },
  ];
  assert.equal(upstreamBody("chat", { ...base, messages: loop }, route).thinking, undefined);
});

test("rule 10: the effort of the last system message is used", () => {
  const messages = [
    { role: "user", content: "hi" },
    { role: "system", content: [], output_config: { effort: "low" } },
    { role: "system", content: [], output_config: { effort: "high" } },
  ];
  const body = { max_tokens: 9, output_config: { effort: "max" }, messages };
  const sent = upstreamBody("messages", body, routeTo("chat"));
  assert.equal(sent.reasoning_effort, "high");
  assert.deepEqual(sent.messages, [{ role: "user", content: "hi" }]);
});
