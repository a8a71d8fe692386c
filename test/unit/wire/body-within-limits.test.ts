/** docs/failure-model.md rows 44 and 45: a body is refused for its depth or its number of tokens before JSON.parse sees it. */
import assert from "node:assert/strict";
import test from "node:test";
import { isJsonFault, JSON_LIMITS, type JsonLimits, scanJson } from "../../../src/wire/json.ts";

function verdict(text: string, limits?: JsonLimits): string {
  const result = scanJson(Buffer.from(text), limits);
  return isJsonFault(result) ? `${result.fault} at ${result.at}` : "accepted";
}

test("row 44: depth counts objects and arrays, the outer object included", () => {
  const limits = { depthMax: 3, tokensMax: 100 };
  assert.equal(verdict('{"a":[[1]]}', limits), "accepted");
  assert.equal(verdict('{"a":[{"b":1}]}', limits), "accepted");
  assert.equal(verdict('{"a":[[[1]]]}', limits), "too_deep at 7");
  assert.equal(verdict('{"a":[[],[],[[]]]}', limits), "too_deep at 13");
});

test("row 44: 5,000 and 5,000,000 nested arrays or objects are too deep, and the rest is not even read", () => {
  for (const count of [5_000, 5_000_000]) {
    assert.equal(verdict(`{"a":${"[".repeat(count)}`), `too_deep at ${5 + JSON_LIMITS.depthMax - 1}`);
    assert.equal(verdict('{"a":'.repeat(count)), `too_deep at ${5 * JSON_LIMITS.depthMax}`);
    assert.match(verdict("[".repeat(count)), /^not_json at 0$/);
  }
});

test("row 45: values and names count as tokens", () => {
  const text = '{"a":[1,"x",null],"b":{}}';
  assert.equal(verdict(text, { depthMax: 9, tokensMax: 8 }), "accepted");
  assert.match(verdict(text, { depthMax: 9, tokensMax: 7 }), /^too_many_tokens/);
});

test("row 45: 16 MB of {},{}, and 10^6 messages and 10^6 names are refused where they exceed the limit", () => {
  const limitBytes = 3 * JSON_LIMITS.tokensMax + 20;
  for (const text of [
    `{"messages":[${"{},".repeat(5_500_000)}{}]}`,
    `{"messages":[${'{"role":"user","content":"x"},'.repeat(1_000_000)}{}]}`,
    `{"metadata":{${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}":1`).join()}}}`,
  ]) {
    const result = scanJson(Buffer.from(text));
    assert.ok(isJsonFault(result) && result.fault === "too_many_tokens");
    assert.ok(result.at <= Math.max(limitBytes, text.length / 2), `stopped at ${result.at} of ${text.length}`);
  }
});

test("a legitimate 32 MiB chat of a few long strings passes", () => {
  const image = "QUJD".repeat(8_000_000);
  assert.equal(verdict(JSON.stringify({ model: "m", messages: [{ role: "user", content: image }] })), "accepted");
});

test("limits of depth 0 and of 0 tokens work", () => {
  assert.equal(verdict("{}", { depthMax: 0, tokensMax: 9 }), "too_deep at 0");
  assert.equal(verdict("{}", { depthMax: 1, tokensMax: 1 }), "accepted");
  assert.match(verdict('{"a":1}', { depthMax: 1, tokensMax: 1 }), /^too_many_tokens/);
});
