/**
 * ARCHITECTURE.md promise 14: a name in place of a tool could be one of the server's own tools, which it runs and bills. No protocol has this form, so it is
 * refused, wherever tools are offered. Before, it was passed on a route of the client's own protocol.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, PROTOCOL_LIST } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

const ROWS = [
  [["web_search"], "tools[0]"],
  [[{ type: "function", name: "own", function: { name: "own" } }, "web_search"], "tools[1]"],
  ["web_search", "tools"],
] as const;

for (const protocol of PROTOCOL_LIST) {
  for (const [tools, param] of ROWS) {
    test(`${protocol}: ${JSON.stringify(tools)} is refused and names ${param}`, async () => {
      const sent = here.simulator.count;
      const asked = protocol === "messages" && Array.isArray(tools) ? tools.map(asMessages) : tools;
      const reply = await ask(here, protocol, account.key, { tools: asked });
      const error = await errorOf(reply);
      assert.deepEqual([reply.status, error.cause], [400, "wrong_type"]);
      const named = protocol === "messages" ? error.message.split(": ")[0] : error.param;
      assert.equal(named, protocol === "messages" ? param.replace(/\[(\d)\]/, ".$1") : param);
      assert.equal(here.simulator.count, sent);
      await assertAtRest(here, account);
    });
  }
}

function asMessages(tool: unknown): unknown {
  return typeof tool === "string" ? tool : { name: "own", input_schema: { type: "object" } };
}

const NAME = "web_search";
const HI = { role: "user", content: "hi" };
const OWN = {
  chat: { type: "function", function: { name: "own" } },
  messages: { name: "own", input_schema: { type: "object" } },
  responses: { type: "function", name: "own" },
} as const satisfies Record<Protocol, Fields>;

const changed = (...content: readonly unknown[]): Fields => ({ messages: [HI, { role: "system", content }] });
const itemed = (item: Fields): Fields => ({ input: [item, HI] });
const additional = (tools: unknown): Fields => itemed({ type: "additional_tools", role: "developer", tools });
const grouped = (tools: unknown): Fields => ({ type: "namespace", name: "n", description: "d", tools });

const REFUSED: readonly (readonly [Protocol, param: string, Fields])[] = [
  ...PROTOCOL_LIST.map((protocol) => [protocol, "tools[1][0]", { tools: [OWN[protocol], [NAME]] }] as const),
  ["chat", "functions[1]", { tools: undefined, functions: [{ name: "own" }, NAME] }],
  ["responses", "tools[0].tools[0]", { tools: [grouped([NAME])] }],
  ["responses", "input[0].tools[0]", additional([NAME])],
  ["responses", "input[0].tools", additional(NAME)],
  ["responses", "input[0].tools[0].tools[1]", additional([grouped([OWN.responses, NAME])])],
  ["responses", "input[0].tools[0]", itemed({ type: "tool_search_output", execution: "client", tools: [NAME] })],
  ["responses", "input[0].tools[0]", itemed({ ...HI, tools: [NAME] })],
  ["messages", "messages.1.content.0.tool", changed({ type: "tool_addition", tool: NAME })],
  ["messages", "messages.1.content.0.tool", changed({ type: "tool_removal", tool: NAME })],
  ["messages", "messages.1.content.0.tool.0", changed({ type: "tool_addition", tool: [NAME] })],
  [
    "messages",
    "messages.1.content.0.tool.definition",
    changed({ type: "tool_addition", tool: { type: "tool_definition", definition: NAME } }),
  ],
  [
    "messages",
    "messages.0.content.0.tool_changes.0",
    { messages: [{ role: "assistant", content: [{ type: "compaction", content: "a", tool_changes: [NAME] }] }, HI] },
  ],
  ["messages", "messages.0.tools.0", { messages: [{ ...HI, tools: [NAME] }] }],
  ["chat", "messages[0].tools[0]", { messages: [{ ...HI, tools: [NAME] }] }],
  ["chat", "messages[0].content[0].tools", { messages: [{ ...HI, content: [{ type: "text", text: "a", tools: 1 }] }] }],
];

for (const [protocol, param, fields] of REFUSED) {
  test(`${protocol}: ${JSON.stringify(fields)} is refused and names ${param}`, async () => {
    const sent = here.simulator.count;
    const reply = await ask(here, protocol, account.key, { tools: [OWN[protocol]], ...fields });
    const error = await errorOf(reply);
    assert.deepEqual([reply.status, error.cause], [400, "wrong_type"]);
    const named = protocol === "messages" ? error.message.split(": ")[0] : error.param;
    assert.equal(named, protocol === "messages" ? param.replaceAll(/\[(\d)\]/g, ".$1") : param);
    assert.equal(here.simulator.count, sent);
    await assertAtRest(here, account);
  });
}

const PASSED: readonly (readonly [what: string, Protocol, Fields])[] = [
  ["a function of the old form", "chat", { functions: [{ name: "own", parameters: { type: "object" } }] }],
  [
    "a reference by name",
    "messages",
    changed(
      { type: "tool_removal", tool: { type: "tool_reference", name: "own" } },
      { type: "tool_addition", tool: { type: "tool_reference", name: "own" } },
    ),
  ],
  [
    "the tool that found a source",
    "chat",
    { messages: [{ ...HI, content: [{ type: "tool_reference", tool: NAME, title: "a" }] }] },
  ],
  ["the tool of a result", "chat", { messages: [{ ...HI, tool: "own", definition: "a" }] }],
  ["a tool without a type", "responses", additional([{ name: "other" }])],
  ["no tools", "responses", itemed({ ...HI, tools: null })],
  [
    "the list of an MCP server",
    "responses",
    itemed({ type: "mcp_list_tools", id: "m", server_label: "s", tools: [{ name: NAME, input_schema: {} }] }),
  ],
  ["a choice by name", "responses", { tool_choice: { type: "function", name: "own" } }],
];

for (const [what, protocol, fields] of PASSED) {
  test(`${protocol}: ${what} passes unchanged`, async () => {
    const reply = await ask(here, protocol, account.key, { tools: [OWN[protocol]], ...fields });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    const sent = JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "");
    for (const [name, value] of Object.entries(fields)) assert.deepEqual(sent[name], value);
    await assertAtRest(here, account);
  });
}
