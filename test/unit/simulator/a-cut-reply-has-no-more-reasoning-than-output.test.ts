/** A reply that the output limit cuts inside its thinking reports reasoning as a part of its output, and never more. */
import assert from "node:assert/strict";
import test from "node:test";
import { startSimulator } from "../../../src/simulator/server.ts";

test("reasoning of a cut reply is at most the limit", async (t) => {
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  simulator.program({ thinking: "long thoughts ".repeat(40), text: "short" });
  const response = await fetch(`${simulator.url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "simulated-small", messages: [{ role: "user", content: "hi" }], max_tokens: 20 }),
  });
  const { choices, usage } = (await response.json()) as {
    readonly choices: readonly { readonly finish_reason: string }[];
    readonly usage: { readonly completion_tokens: number; readonly completion_tokens_details: object };
  };
  assert.equal(choices[0]?.finish_reason, "length");
  assert.equal(usage.completion_tokens, 20);
  assert.deepEqual((usage.completion_tokens_details as { readonly reasoning_tokens: number }).reasoning_tokens, 20);
});
