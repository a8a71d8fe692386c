/** Rule 27: a thinking budget becomes an effort. A range includes its smallest budget, and not its largest. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const EFFORTS = ["low", "medium", "high", "xhigh"] as const;

for (const [budget_tokens, effort] of [
  [4_095, "low"],
  [4_096, "medium"],
  [16_383, "medium"],
  [16_384, "high"],
  [32_767, "high"],
  [32_768, "xhigh"],
] as const) {
  test(`a budget of ${budget_tokens} tokens is the effort ${effort}`, () => {
    const thinking = { type: "enabled", budget_tokens };
    const body = { model: "m", max_tokens: 40_000, messages: [{ role: "user", content: "q" }], thinking };
    const sent = upstreamBody("messages", body, routeTo("chat", { efforts: EFFORTS }));
    assert.equal(sent.reasoning_effort, effort);
  });
}
