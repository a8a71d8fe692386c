/**
 * docs/translation-rules.md rule 11 on every route: the line that changes with each request leaves a messages body that
 * is not translated.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { rewritten } from "./applying.ts";

const LINE = "x-anthropic-billing-header: cc_version=2.1; cch=ab12;";
const BLOCK = `{"type":"text","text":"${LINE}"}`;
const stripped = (body: string) => rewritten("messages", body, [{ strip_attribution: true }]);

test("the block goes with its comma, and every other byte stays", () => {
  const rest = '{"type":"text", "text":"You are X","cache_control":{"type":"ephemeral"} }';
  assert.equal(stripped(`{"a":1, "system": [ ${BLOCK} , ${rest} ] ,"z":-0}`), `{"a":1, "system": [ ${rest} ] ,"z":-0}`);
  assert.equal(stripped(`{"system":[${rest}, ${BLOCK}]}`), `{"system":[${rest}]}`);
  assert.equal(stripped(`{"system":[${rest}, ${BLOCK},\n${rest}]}`), `{"system":[${rest},\n${rest}]}`);
});

test("a system that held nothing else goes altogether", () => {
  assert.equal(stripped(`{"system":[${BLOCK}, ${BLOCK}],"a":1}`), '{"a":1}');
  assert.equal(stripped(`{"a":1,"system":"${LINE}"}`), '{"a":1}');
});

test("text behind the line stays", () => {
  assert.equal(stripped(`{"system":"${LINE}\\nYou are X"}`), '{"system":"You are X"}');
  const block = `{"text":"${LINE}\\nYou are X" , "type":"text"}`;
  assert.equal(stripped(`{"system":[ ${block}]}`), '{"system":[ {"text":"You are X" , "type":"text"}]}');
});

test("escapes do not hide the line", () => {
  assert.equal(stripped(`{"system":[{"type":"text","t\\u0065xt":"\\u0078${LINE.slice(1)}"}],"a":1}`), '{"a":1}');
});

test("what is no attribution is not touched", () => {
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

test("other protocols have no such line, and bodies are left alone", () => {
  for (const protocol of ["chat", "responses"] as const) {
    const body = `{"system":"${LINE}","instructions":"${LINE}"}`;
    assert.equal(rewritten(protocol, body, [{ strip_attribution: true }]), body);
  }
});
