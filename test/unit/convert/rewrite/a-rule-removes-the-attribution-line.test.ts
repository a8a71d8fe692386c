/**
 * docs/translation-rules.md rule 11: on a route of the client's own protocol, an operator's rule removes the line that
 * changes with each request from a messages body.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { rewritten } from "./applying.ts";

const LINE = "x-anthropic-billing-header: cc_version=2.1; cch=ab12;";
const BLOCK = `{"type":"text","text":"${LINE}"}`;
const stripped = (body: string) => rewritten("messages", body, [{ strip_attribution: true }]);

test("the block is removed with its comma, and every other byte stays", () => {
  const rest = '{"type":"text", "text":"You are X","cache_control":{"type":"ephemeral"} }';
  assert.equal(stripped(`{"a":1, "system": [ ${BLOCK} , ${rest} ] ,"z":-0}`), `{"a":1, "system": [ ${rest} ] ,"z":-0}`);
  assert.equal(stripped(`{"system":[${rest}, ${BLOCK}]}`), `{"system":[${rest}]}`);
  assert.equal(stripped(`{"system":[${rest}, ${BLOCK},\n${rest}]}`), `{"system":[${rest},\n${rest}]}`);
});

test("a system member without other text is removed completely", () => {
  assert.equal(stripped(`{"system":[${BLOCK}, ${BLOCK}],"a":1}`), '{"a":1}');
  assert.equal(stripped(`{"a":1,"system":"${LINE}"}`), '{"a":1}');
});

test("text after the line stays", () => {
  assert.equal(stripped(`{"system":"${LINE}\\nYou are X"}`), '{"system":"You are X"}');
  const block = `{"text":"${LINE}\\nYou are X" , "type":"text"}`;
  assert.equal(stripped(`{"system":[ ${block}]}`), '{"system":[ {"text":"You are X" , "type":"text"}]}');
});

test("the line is removed even if it is written with escapes", () => {
  assert.equal(stripped(`{"system":[{"type":"text","t\\u0065xt":"\\u0078${LINE.slice(1)}"}],"a":1}`), '{"a":1}');
});

test("text that is not an attribution line stays", () => {
  for (const body of [
    `{"system":"You are X. ${LINE}"}`,
    `{"system":[{"type":"text","text":"a"},{"type":"text","text":7},"${LINE}",null]}`,
    '{"system":7}',
    '{"system":[]}',
    `{"messages":[{"role":"user","content":"${LINE}"}]}`,
  ]) {
    assert.equal(stripped(body), body);
  }
});

test("bodies of other protocols stay, because they have no such line", () => {
  for (const protocol of ["chat", "responses"] as const) {
    const body = `{"system":"${LINE}","instructions":"${LINE}"}`;
    assert.equal(rewritten(protocol, body, [{ strip_attribution: true }]), body);
  }
});
