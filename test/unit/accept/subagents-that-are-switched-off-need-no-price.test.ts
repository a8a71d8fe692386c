/** ARCHITECTURE.md promise 14: `multi_agent` of a responses client buys subagents, unless its `enabled` is false. */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";

function read(multiAgent: string) {
  return readEnvelope("responses", Buffer.from(`{"model":"m","input":"a","multi_agent":${multiAgent}}`));
}

function optionsOf(multiAgent: string): readonly string[] {
  const found = read(multiAgent);
  if (isRefusal(found)) assert.fail(JSON.stringify(found));
  return found.envelope.options;
}

test("subagents that are switched off are not bought", () => {
  for (const off of ["null", '{"enabled":false}', '{"max_concurrent_subagents":2,"enabled":false}'])
    assert.deepEqual(optionsOf(off), [], off);
});

test("any other value may run subagents", () => {
  for (const on of ['{"enabled":true}', '{"enabled":"false"}', '{"enabled":null}', "{}", "true", '[{"enabled":false}]'])
    assert.deepEqual(optionsOf(on), ["multi_agent"], on);
});

test("a switch that servers could read differently is refused", () => {
  for (const doubtful of ['{"enabled":true,"enabled":false}', '{"enabled":false,"Enabled":true}']) {
    const found = read(doubtful);
    assert.ok(isRefusal(found), doubtful);
    assert.match(String(found.facts.param), /^multi_agent\.enabled$/i);
  }
});
