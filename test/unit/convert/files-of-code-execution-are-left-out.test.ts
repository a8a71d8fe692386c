/**
 * The ids of files that code execution produced are left out of a result that a client sends back: such an id is valid
 * for everyone who shares the upstream's credential (ARCHITECTURE.md promise 14). The conversation continues without
 * them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { openExchange } from "../../../src/convert/bridge.ts";
import { countedOf, countFault, encodeCount } from "../../../src/convert/count.ts";
import type { ClientRequest } from "../../../src/convert/exchange.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { CONTEXT } from "./request/translate.ts";
import { routeOf } from "./translate/rig.ts";

const ROUTE = { ...routeOf("messages"), upstreamModel: "m" };
const QUESTION = '{"role":"user","content":"draw"}';
const CALL = '{"type":"server_tool_use","id":"srvtoolu_1","name":"bash_code_execution","input":{"command":"x"}}';

/** A turn with two code executions, in a spelling that no encoder of this project produces. */
const turn = (bash: string, python: string, more = "") =>
  `{"role": "assistant","content":[${CALL},{ "type":"bash_code_execution_tool_result", "tool_use_id":"srvtoolu_1",` +
  `"content":{"type":"bash_code_execution_result","stdout":"1.50 \\u00e9", "return_code":0.0,"content":${bash}${more}}},` +
  `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_2" ,"content":{"stdout":"","content":${python}}},` +
  `{"type":"text","text":"code_execution_output\\" and more"}]}`;

const BASH =
  '[{"type":"bash_code_execution_output","file_id":"file_1"} , { "type":"bash_code_execution_output","file_id":"file_2"}]';
const PYTHON = '[{"type":"code_execution_output","file_id":"file_3"}]';

const bodyOf = (...turns: readonly string[]) =>
  `{"model":"m","max_tokens":9, "messages":[${[QUESTION, ...turns].join(",")}] ,"stop_sequences":[]}`;

function requestOf(text: string): ClientRequest {
  const read = readEnvelope("messages", Buffer.from(text));
  assert.ok(!isRefusal(read), JSON.stringify(read));
  return { protocol: "messages", model: "m", stream: false, ...read };
}

const PERMITTED = { outputLimit: undefined, strict: false };

/** The upstream's body and the answer's header, or the member that is refused. */
function sent(text: string, strict = false) {
  const exchange = openExchange(requestOf(text), ROUTE, { ...PERMITTED, strict }, CONTEXT);
  if (isRefusal(exchange)) return exchange.facts.param;
  return [Buffer.from(exchange.request.body).toString(), exchange.translation];
}

const BOTH = "lossy; dropped=messages.bash_code_execution_output,messages.code_execution_output";

test("the files are left out and named, and every other byte stays", () => {
  assert.deepEqual(sent(bodyOf(turn(BASH, PYTHON), QUESTION)), [bodyOf(turn("[]", "[]"), QUESTION), BOTH]);
});

test("other changes to the body still apply at their right positions", () => {
  const request = requestOf(bodyOf(turn(BASH, PYTHON)).replace('"model":"m",', "").replace(/\}$/, ',"model":"m"}'));
  const route = { ...ROUTE, upstreamModel: "other" };
  const exchange = openExchange(request, route, { ...PERMITTED, outputLimit: 5 }, CONTEXT);
  assert.ok(!isRefusal(exchange));
  assert.equal(
    Buffer.from(exchange.request.body).toString(),
    `{"max_tokens":5, "messages":[${QUESTION},${turn("[]", "[]")}] ,"stop_sequences":[],"model":"other"}`,
  );
});

test("an output without an id is kept, and a block next to it keeps its bytes", () => {
  const beside = '{ "type":"tool_result", "tool_use_id":"t","content":[ ] }';
  const unnamed = '{ "type":"bash_code_execution_output" }';
  const at = (bash: string) => bodyOf(turn(bash, "[]").replace('{"type":"text"', `${beside},{"type":"text"`));
  assert.deepEqual(sent(at(`[${unnamed},${BASH.slice(1)}`)), [
    at(`[${unnamed}]`),
    "lossy; dropped=messages.bash_code_execution_output",
  ]);
  assert.deepEqual(sent(at(`[${unnamed}]`)), [at(`[${unnamed}]`), undefined]);
});

test("other content of a result, and results without files, stay as they are", () => {
  const nothing = bodyOf(turn("[]", "[]"), QUESTION);
  assert.deepEqual(sent(nothing), [nothing, undefined]);
  const [body, named] = sent(bodyOf(turn(`[{"type":"text","text":"a"},${BASH.slice(1)}`, "[]"))) as [string, string];
  assert.equal(JSON.parse(body).messages[1].content[1].content.content.length, 1);
  assert.equal(named, "lossy; dropped=messages.bash_code_execution_output");
});

test("a strict request is refused with the path of the first file", () => {
  assert.equal(sent(bodyOf(turn("[]", PYTHON)), true), "messages[1].content[2].content.content[0].file_id");
});

test("a file id in any other place is refused", () => {
  const output = '{"type":"bash_code_execution_output","file_id":"file_1"}';
  for (const [block, place] of [
    [output, "content[0].file_id"],
    [`{"type":"tool_result","tool_use_id":"t","content":[${output}]}`, "content[0].content[0].file_id"],
    [
      `{"type":"bash_code_execution_tool_result","tool_use_id":"t","content":[${output}]}`,
      "content[0].content[0].file_id",
    ],
    [
      `{"type":"bash_code_execution_tool_result","tool_use_id":"t","content":{"content":[{"type":"x","file_id":"file_1"}]}}`,
      "content[0].content.content[0].file_id",
    ],
    [
      `{"type":"bash_code_execution_tool_result","tool_use_id":"t","content":{"file_id":"f","content":[${output}]}}`,
      "content[0].content.file_id",
    ],
    ['{"type":"container_upload","file_id":"file_1"}', "content[0].file_id"],
  ] as const) {
    assert.equal(sent(bodyOf(`{"role":"assistant","content":[${block}]}`)), `messages[1].${place}`, block);
  }
});

test("a conversation with more than 256 files is refused", () => {
  const files = (count: number) => `[${Array.from({ length: count }, () => PYTHON.slice(1, -1)).join(",")}]`;
  assert.deepEqual(sent(bodyOf(turn("[]", files(256)))), [
    bodyOf(turn("[]", "[]")),
    "lossy; dropped=messages.code_execution_output",
  ]);
  assert.equal(sent(bodyOf(turn("[]", files(257)))), "messages[1].content[2].content.content[0].file_id");
});

test("in another protocol a block that looks like such a result is refused", () => {
  const text = bodyOf(turn(BASH, "[]"));
  const read = readEnvelope("chat", Buffer.from(text));
  assert.ok(!isRefusal(read));
  const request: ClientRequest = { protocol: "chat", model: "m", stream: false, ...read };
  const exchange = openExchange(request, { ...routeOf("chat"), upstreamModel: "m" }, PERMITTED, CONTEXT);
  assert.ok(isRefusal(exchange));
  assert.equal(exchange.facts.param, "messages[1].content[1].content.content[0].file_id");
});

test("a duplicate member, of which one would keep its files, is refused", () => {
  const twice = `,"content":[{"type":"bash_code_execution_output","file_id":"file_9"}]`;
  for (const more of [twice, twice.replace('"content"', '"cont\\u0065nt"')]) {
    const refused = sent(bodyOf(turn(BASH, "[]", more)));
    assert.equal(typeof refused, "string", JSON.stringify(refused));
  }
});

test("the files are left out of a count request as well", () => {
  const request = countedOf(requestOf(bodyOf(turn(BASH, PYTHON))));
  assert.equal(countFault(request), undefined);
  const counted = encodeCount(request, ROUTE);
  assert.ok(!isRefusal(counted));
  assert.equal(Buffer.from(counted).toString(), bodyOf(turn("[]", "[]")));
  assert.deepEqual(request.json, JSON.parse(bodyOf(turn("[]", "[]"))));
});
