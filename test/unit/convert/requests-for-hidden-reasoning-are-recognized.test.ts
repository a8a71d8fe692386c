// Which requests ask for reasoning, or for reasoning that is not shown (docs/decisions/what-a-disconnect-costs.md).
import assert from "node:assert/strict";
import test from "node:test";
import { asksToThink } from "../../../src/convert/thinking-asked.ts";

const THINKING: readonly object[] = [
  { reasoning_effort: "high" },
  { reasoning_effort: "minimal" },
  { reasoning: { effort: "low" } },
  { reasoning: { max_tokens: 2_000 } },
  { reasoning: { enabled: true } },
  { thinking: { type: "adaptive" } },
  { thinking: { budget_tokens: 4_000 } },
  { thinking: { reasoning_effort: "high" } },
  { output_config: { effort: "high" } },
  { enable_thinking: true },
  { thinking_budget: 4_000 },
  { thinking_token_budget: 4_000 },
  { thinking_budget_tokens: 4_000 },
  { reasoning_budget: 4_000 },
  { prompt_mode: "reasoning" },
  { chat_template_kwargs: { enable_thinking: true } },
  { chat_template_kwargs: { thinking: true } },
  { chat_template_kwargs: { thinking_budget: 4_000 } },
  { chat_template_kwargs: { thinking_mode: "enabled" } },
  { chat_template_kwargs: { reasoning_effort: "high" } },
];

/** Requests by which a server leaves out or holds back reasoning that it would have shown. */
const HIDING: readonly object[] = [
  { reasoning: { exclude: true } },
  { include_reasoning: false },
  { reasoning_format: "hidden" },
  { stream_reasoning: false },
];

const NEITHER: readonly object[] = [
  {},
  { reasoning_effort: "none" },
  { reasoning: { effort: "none", exclude: false } },
  { reasoning: null, thinking: { type: "disabled", budget_tokens: 0 } },
  { enable_thinking: false, thinking_budget: 0 },
  { include_reasoning: true, reasoning_format: "parsed", stream_reasoning: true },
  { chat_template_kwargs: { enable_thinking: false, clear_thinking: true } },
];

for (const [says, bodies] of [[true, [...THINKING, ...HIDING]] as const, [false, NEITHER] as const]) {
  for (const body of bodies) {
    test(`${JSON.stringify(body)} ${says ? "asks" : "does not ask"} for reasoning, shown or hidden`, () =>
      assert.equal(asksToThink({ ...body }), says));
  }
}
