/** Rules apply however a client spells a member, and take time in proportion to the body's length. */
import assert from "node:assert/strict";
import test from "node:test";
import { workTimer } from "../../../rig/stopwatch.ts";
import { actionsOf, applied, rewritten } from "./applying.ts";

test("a rule applies to a name with escapes", () => {
  const rules = [{ drop: ["metadata.user_id"] }, { set: { temperature: 0 } }];
  const body = '{"met\\u0061data":{"user\\u005fid":1,"a":2},"temper\\u0061ture":1}';
  assert.equal(rewritten("chat", body, rules), '{"met\\u0061data":{"a":2},"temper\\u0061ture":0}');
});

test("a duplicate nested member is dropped twice", () => {
  const body = '{"metadata":{"user_id":1,"a":2,"user_id":3},"x":1.0}';
  assert.equal(rewritten("chat", body, [{ drop: ["metadata.user_id"] }]), '{"metadata":{"a":2},"x":1.0}');
});

test("bodies that are made to be slow take linear time", () => {
  const many = (text: string, times: number) => Array(times).fill(text).join(",");
  const bodies = (times: number) => [
    `{"metadata":{${many('"user_id":1', times)}}}`,
    `{"system":[${many('{"type":"text","text":"x-anthropic-billing-header: a"}', times)}]}`,
    `{"messages":[${many('{"role":"system","content":""}', times)}]}`,
  ];
  const actions = actionsOf([
    { drop: ["metadata.user_id"] },
    { strip_attribution: true },
    { system: { text: "hello" } },
  ]);
  const costMs = (times: number) => {
    const texts = bodies(times);
    const worked = workTimer();
    for (const text of texts) for (const protocol of ["chat", "messages"] as const) applied(protocol, text, actions);
    return worked();
  };
  costMs(1_000);
  const small = costMs(5_000);
  const large = costMs(50_000);
  // Ten times the length. A quadratic pass would take a hundred times as long.
  assert.ok(large < Math.max(small, 5) * 40, `${small} ms, then ${large} ms`);
});
