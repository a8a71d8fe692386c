/**
 * Thinking budgets that some servers count in addition to the output limit are read from every member that can hold
 * one, and never make a body fail.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import type { Protocol } from "../../../src/values/protocol.ts";

function budgetOf(protocol: Protocol, members: object): unknown {
  const asked = protocol === "responses" ? { input: "x" } : { messages: [{ role: "user", content: "x" }] };
  const limit = protocol === "messages" ? { max_tokens: 9_000 } : {};
  const body = JSON.stringify({ model: "m", ...asked, ...limit, ...members });
  const read = readEnvelope(protocol, Buffer.from(body));
  return "envelope" in read ? read.envelope.thinkingBudget : read;
}

test("every name of a budget is read, the largest of several counts, and text that is a number is read as one", () => {
  for (const name of ["thinking_budget", "thinking_token_budget", "thinking_budget_tokens", "reasoning_budget"]) {
    assert.equal(budgetOf("chat", { [name]: 20_000 }), 20_000, name);
  }
  assert.equal(budgetOf("chat", { reasoning: { max_tokens: 700 } }), 700);
  assert.equal(budgetOf("responses", { reasoning: { max_tokens: 700 } }), 700);
  assert.equal(budgetOf("chat", { thinking: { type: "enabled", budget_tokens: 800 } }), 800);
  assert.equal(budgetOf("chat", { chat_template_kwargs: { thinking_budget: 900.5 }, thinking_budget: 3 }), 901);
  assert.equal(budgetOf("chat", { thinking_budget: "20000" }), 20_000);
});

test("text that only other readers take for a number counts as the largest budget", () => {
  for (const value of ["1_000_000", "１０００", "٩٩٩", "-1_0", "20000 tokens"]) {
    assert.equal(budgetOf("chat", { thinking_budget: value }), Number.MAX_SAFE_INTEGER, value);
  }
});

test("a value that is no budget counts as none", () => {
  for (const value of [null, -1, "many", "", {}, [], true]) {
    assert.equal(budgetOf("chat", { thinking_budget: value }), 0, JSON.stringify(value));
  }
  assert.equal(budgetOf("chat", { reasoning: "high" }), 0);
  assert.equal(budgetOf("messages", { thinking: { type: "enabled", budget_tokens: 2_000 } }), 0);
});
