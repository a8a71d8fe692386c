/**
 * Rule 27: how chat clients ask for reasoning, in the members of many servers, and which of several members is used.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { type Body, PERMITTED, routeTo, translate, upstreamBody } from "./translate.ts";

const EFFORTS: Partial<Capabilities> = { efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"] };
const ask = (more: Body): Body => ({
  model: "m",
  messages: [{ role: "user", content: "hi" }],
  max_tokens: 30_000,
  ...more,
});
const budget = (tokens: number) => ({ type: "enabled", budget_tokens: tokens });

/** The body, and what messages models with a budget, adaptive ones, and responses servers get. */
const ROWS: readonly (readonly [
  asked: Body,
  budget: object | undefined,
  adaptive: unknown,
  effort: string | undefined,
])[] = [
  [{}, undefined, undefined, undefined],
  [{ reasoning_effort: "high" }, budget(24_576), "high", "high"],
  [{ reasoning: { effort: "high" } }, budget(24_576), "high", "high"],
  [{ reasoning: { effort: "none" } }, undefined, "off", "none"],
  [{ reasoning: { enabled: true } }, budget(10_240), "on", "medium"],
  [{ reasoning: { enabled: false } }, undefined, "off", "none"],
  [{ reasoning: { max_tokens: 5_000 } }, budget(5_000), "medium", "medium"],
  [{ thinking: { type: "enabled", budget_tokens: 20_000 } }, budget(20_000), "high", "high"],
  [{ thinking: { type: "enabled" } }, budget(10_240), "on", "medium"],
  [{ thinking: { type: "disabled" } }, undefined, "off", "none"],
  [{ enable_thinking: true }, budget(10_240), "on", "medium"],
  [{ enable_thinking: true, thinking_budget: 2_000 }, budget(2_000), "low", "low"],
  [{ enable_thinking: false }, undefined, "off", "none"],
  [{ chat_template_kwargs: { enable_thinking: true } }, budget(10_240), "on", "medium"],
  [{ chat_template_kwargs: { thinking: false } }, undefined, "off", "none"],
  [{ chat_template_kwargs: { enable_thinking: true }, reasoning_effort: "low" }, budget(4_096), "low", "low"],
];

for (const [asked, toBudget, toAdaptive, effort] of ROWS) {
  test(`${JSON.stringify(asked)} is mapped, and nothing is named`, () => {
    const sentTo = (capabilities: Partial<Capabilities>) =>
      upstreamBody("chat", ask(asked), routeTo("messages", capabilities));
    assert.deepEqual(sentTo({ thinking: "budget" }).thinking, toBudget);
    const { thinking, output_config } = sentTo({ thinking: "adaptive", ...EFFORTS });
    const type = (thinking as { type?: string } | undefined)?.type;
    const word = (output_config as { effort?: string } | undefined)?.effort;
    assert.equal(word ?? (type === "disabled" ? "off" : type === "adaptive" ? "on" : undefined), toAdaptive);
    const sent = upstreamBody("chat", ask(asked), routeTo("responses", EFFORTS));
    assert.equal((sent.reasoning as { effort?: string } | undefined)?.effort, effort);
    const whole = translate("chat", ask(asked), routeTo("responses", EFFORTS), { ...PERMITTED, strict: true });
    assert.ok(!isRefusal(whole) && whole.dropped.length === 0);
  });
}

/** Contradictions: the effort that is used, and the members that are named as dropped. */
const CONFLICTS: readonly (readonly [asked: Body, effort: string | undefined, dropped: readonly string[]])[] = [
  [{ enable_thinking: false, reasoning_effort: "high" }, "none", ["reasoning_effort"]],
  [{ enable_thinking: true, reasoning_effort: "none" }, "medium", ["reasoning_effort"]],
  [{ thinking: { type: "disabled", budget_tokens: 4_096 } }, "none", ["thinking.budget_tokens"]],
  [{ thinking: { type: "enabled" }, reasoning: { effort: "none" } }, "medium", ["reasoning.effort"]],
  [{ reasoning: { effort: "low" }, reasoning_effort: "high" }, "low", ["reasoning_effort"]],
  [{ reasoning: { effort: "high" }, reasoning_effort: "high" }, "high", []],
  [{ thinking: { type: "enabled", budget_tokens: 2_000 }, reasoning_effort: "high" }, "low", ["reasoning_effort"]],
  [{ chat_template_kwargs: { enable_thinking: false, thinking: true } }, "none", ["chat_template_kwargs.thinking"]],
  [
    { enable_thinking: "yes", thinking: { type: "sometimes" }, reasoning: { effort: "huge" } },
    undefined,
    ["enable_thinking", "thinking.type", "reasoning.effort"],
  ],
  [{ enable_thinking: "yes", reasoning_effort: "low" }, "low", ["enable_thinking"]],
  [
    { thinking: "on", reasoning: [1], chat_template_kwargs: 7, reasoning_effort: "low" },
    "low",
    ["chat_template_kwargs", "thinking", "reasoning"],
  ],
  [{ thinking_budget: -1 }, "medium", []],
  [{ thinking_budget: 0 }, "none", []],
  [
    { thinking_budget: 1.5, chat_template_kwargs: { think_level: 3 } },
    undefined,
    ["chat_template_kwargs.think_level", "thinking_budget"],
  ],
];

for (const [asked, effort, dropped] of CONFLICTS) {
  test(`of ${JSON.stringify(asked)} the first valid member is used, and the others are named`, () => {
    const encoded = translate("chat", ask(asked), routeTo("responses", EFFORTS));
    assert.ok(!isRefusal(encoded));
    const { reasoning } = JSON.parse(new TextDecoder().decode(encoded.body));
    assert.equal(reasoning?.effort, effort);
    assert.deepEqual([...encoded.dropped, ...encoded.unlisted].sort(), [...dropped].sort());
    const strict = translate("chat", ask(asked), routeTo("responses", EFFORTS), { ...PERMITTED, strict: true });
    assert.equal(isRefusal(strict), dropped.length > 0);
  });
}

test("a model without reasoning is not asked for it, and the member is named", () => {
  for (const asked of [
    { enable_thinking: true },
    { reasoning: { effort: "high" } },
    { thinking: { type: "enabled" } },
  ]) {
    for (const route of [routeTo("messages"), routeTo("responses", { efforts: [] })]) {
      const encoded = translate("chat", ask(asked), route);
      assert.ok(!isRefusal(encoded));
      assert.equal(encoded.dropped.length, 1, JSON.stringify([asked, encoded.dropped]));
    }
  }
});
