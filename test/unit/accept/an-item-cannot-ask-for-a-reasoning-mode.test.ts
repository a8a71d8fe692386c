/**
 * ARCHITECTURE.md promise 14: `reasoning.mode` of a request has prices of its own. An item that changes the reasoning
 * (`configuration_update`) would buy the mode at the standard prices.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";

function read(reasoning: unknown) {
  const input = [
    { type: "configuration_update", reasoning },
    { role: "user", content: "hi" },
  ];
  return readEnvelope("responses", Buffer.from(JSON.stringify({ model: "m", input })));
}

test("a mode with a price of its own, or of a form that servers could read differently, is refused", () => {
  for (const reasoning of [{ mode: "pro" }, { effort: "high", mode: "other" }, [{ mode: "pro" }], { mode: ["pro"] }]) {
    const found = read(reasoning);
    assert.ok(isRefusal(found), JSON.stringify(reasoning));
    assert.deepEqual([found.cause, found.facts.param], ["unsupported_parameter", "input[].reasoning.mode"]);
  }
});

test("a mode under a name that some servers read as this one is refused", () => {
  for (const item of [{ reasoning: { Mode: "pro" } }, { Reasoning: { mode: "pro" } }]) {
    const input = [{ type: "configuration_update", ...item }];
    const found = readEnvelope("responses", Buffer.from(JSON.stringify({ model: "m", input })));
    assert.ok(isRefusal(found), JSON.stringify(item));
    assert.equal(found.cause, "unsupported_parameter");
  }
});

test("an effort, the standard mode and none pass", () => {
  for (const reasoning of [{ effort: "high" }, { mode: "standard" }, { mode: null }, null, {}, []])
    assert.ok(!isRefusal(read(reasoning)), JSON.stringify(reasoning));
});

test("the text of earlier reasoning passes", () => {
  const messages = [{ role: "assistant", content: "a", reasoning: "b" }];
  assert.ok(!isRefusal(readEnvelope("chat", Buffer.from(JSON.stringify({ model: "m", messages })))));
});
