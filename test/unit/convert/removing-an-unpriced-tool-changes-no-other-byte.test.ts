/**
 * ARCHITECTURE.md promises 6 and 14: a hosted tool without a price is left out wherever it is offered, and every other
 * byte stays.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { CONTEXT } from "./request/translate.ts";
import { routeOf } from "./translate/rig.ts";

const HOSTED = '{"type":"web_search"}';
/** Numbers that a double cannot hold, and white space. */
const OWN =
  '{"type":"function","name":"f", "parameters":{"maximum":12345678901234567890,"minimum":-0,"default":1e400,"const":1.0}}';

const HEAD = '{"model":"m","store":false,';

/** The body that goes upstream, without its beginning, and the names that were left out. */
function sent(protocol: Protocol, members: string, unpriced = "web_search"): readonly [string, readonly string[]] {
  const head = protocol === "responses" ? HEAD : '{"model":"m",';
  const read = readEnvelope(protocol, Buffer.from(`${head}${members}}`));
  assert.ok(!isRefusal(read), members);
  const route = { ...routeOf(protocol), upstreamModel: "m" };
  const permitted = { outputLimit: undefined, unpricedTools: [unpriced], strict: false };
  const exchange = openExchange({ protocol, model: "m", stream: false, ...read }, route, permitted, CONTEXT);
  assert.ok(!isRefusal(exchange), members);
  const { body, dropped } = exchange.request;
  return [Buffer.from(body).toString().replace(head, "").slice(0, -1), dropped];
}

const CASES: readonly (readonly [string, string])[] = [
  [`"input":"a","tools":[${HOSTED}, ${OWN}]`, `"input":"a","tools":[${OWN}]`],
  [`"input":"a","tools":[${OWN} ,${HOSTED},${OWN}]`, `"input":"a","tools":[${OWN},${OWN}]`],
  [`"input":"a","tools":[${HOSTED}]`, `"input":"a"`],
  [
    `"input":"a","tools":[{"type":"namespace", "name":"n","tools":[${OWN}, ${HOSTED}]}]`,
    `"input":"a","tools":[{"type":"namespace", "name":"n","tools":[${OWN}]}]`,
  ],
  [
    `"input":[{"role":"user","content":"a" },{"type":"additional_tools", "tools":[${HOSTED},${OWN}]}]`,
    `"input":[{"role":"user","content":"a" },{"type":"additional_tools", "tools":[${OWN}]}]`,
  ],
  [
    `"input":[{"role":"user","content":"a"},{"type":"additional_tools","tools":[${HOSTED}]}]`,
    `"input":[{"role":"user","content":"a"}]`,
  ],
  [`"input":"a","tools":${HOSTED}`, `"input":"a"`],
  [
    `"input":[{"type":"tool_search_output","call_id":"c","tools":[${HOSTED}]}]`,
    `"input":[{"type":"tool_search_output","call_id":"c","tools":[]}]`,
  ],
];

test("responses: an unpriced tool is left out at the top, in a namespace and in an item", () => {
  for (const [members, expected] of CASES) {
    const [body, dropped] = sent("responses", members);
    assert.equal(body, expected);
    assert.deepEqual(dropped, ["tools.web_search"]);
  }
});

test("messages: changes that refer to an unpriced tool are left out with it", () => {
  const search = '{"type":"web_search","name":"search","defer_loading":true}';
  const own = OWN.replace("function", "custom").replace("parameters", "input_schema");
  const change = (type: string, name: string) =>
    `{"type":"${type}", "tool":{"type":"tool_reference","name":"${name}"}}`;
  const user = '{"role":"user", "content":"a"}';
  const system = (...blocks: readonly string[]) => `{"role":"system", "content":[${blocks}]}`;
  const text = '{"type":"text", "text":"b"}';
  const members = (tools: readonly string[], ...messages: readonly string[]) =>
    `"max_tokens":9,"messages":[${messages}],"tools":[${tools}]`;
  const [body, dropped] = sent(
    "messages",
    members(
      [search, own],
      user,
      system(change("tool_addition", "search")),
      system(text, change("tool_removal", "search"), change("tool_removal", "f")),
    ),
  );
  assert.equal(body, members([own], user, system(text, change("tool_removal", "f"))));
  assert.deepEqual(dropped, ["tools.web_search"]);
});

test("messages: changes that refer to tools of an unpriced server are left out, and those of other tools stay", () => {
  const server = '{"type":"mcp_toolset","mcp_server_name":"files"}';
  const own = OWN.replace("function", "custom").replace("parameters", "input_schema");
  const change = (tool: string) => `{"type":"tool_addition", "tool":${tool}}`;
  const ofServer = change('{"type":"mcp_tool_reference","server_name":"files","name":"f"}');
  const kept = [
    change('{"type":"tool_reference","name":"f"}'),
    change(`{"type":"tool_definition","definition":${own.replace('"f"', '"g"')}}`),
  ];
  const members = (tools: readonly string[], changes: readonly string[]) =>
    `"max_tokens":9,"messages":[{"role":"user", "content":"a"},{"role":"system", "content":[${changes}]}],"tools":[${tools}]`;
  const [body, dropped] = sent("messages", members([server, own], [ofServer, ...kept]), "mcp_toolset");
  assert.equal(body, members([own], kept));
  assert.deepEqual(dropped, ["tools.mcp"]);
});

test("if nothing is left out, no byte changes", () => {
  const members = `"input":"a", "tools":[${OWN} , {"type":"namespace","name":"n","tools":[ ${OWN} ]}]`;
  assert.equal(sent("responses", members)[0], members);
});
