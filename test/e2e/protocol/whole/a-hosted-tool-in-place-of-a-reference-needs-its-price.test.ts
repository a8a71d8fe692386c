/**
 * ARCHITECTURE.md promise 14: a change of tools refers to a tool by its name or holds its definition. A lenient server may
 * also read a hosted tool that is written in place of the reference, so this needs a price like all others. Before, it was passed without one.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, usageLines } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        models: {
          "messages-priced": {
            plans: ["free"],
            context_tokens: 200_000,
            routes: [{ upstream: "up-messages" }],
            price: { input: "1", output: "10", tools: { web_search: "0.01" } },
          },
        },
      }),
  });
  account = await here.account();
});
after(() => here.close());

const DATED = { type: "web_search_20250305", name: "web_search" };
const SEARCH = { type: "web_search" };
const HI = { role: "user", content: "hi" };
const OWN = {
  chat: { type: "function", function: { name: "own" } },
  messages: { name: "own", input_schema: { type: "object" } },
  responses: { type: "function", name: "own" },
} as const satisfies Record<Protocol, Fields>;
const CALLED = { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "own", input: {} }] };

const added = (...content: readonly Fields[]): Fields => ({ messages: [HI, { role: "system", content }] });
const resulted = (part: Fields): Fields => ({
  messages: [HI, CALLED, { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [part] }] }],
});
const compacted = (...tool_changes: readonly Fields[]): Fields => ({
  messages: [{ role: "assistant", content: [{ type: "compaction", content: "earlier", tool_changes }] }, HI],
});
const itemed = (item: Fields): Fields => ({ input: [{ type: "additional_tools", role: "developer", ...item }, HI] });

const REFUSED: readonly (readonly [where: string, Protocol, Fields])[] = [
  ["an addition", "messages", added({ type: "tool_addition", tool: DATED })],
  ["a list in an addition", "messages", added({ type: "tool_addition", tool: [DATED] })],
  ["a removal", "messages", added({ type: "tool_removal", tool: DATED })],
  [
    "a definition of another tool",
    "messages",
    added({ type: "tool_addition", tool: { type: "tool_definition", definition: { ...OWN.messages, tool: DATED } } }),
  ],
  ["a system block", "messages", { system: [{ type: "tool_addition", tool: DATED }] }],
  ["a message", "messages", { messages: [{ ...HI, tool: DATED }] }],
  ["a result", "messages", resulted({ type: "tool_addition", tool: DATED })],
  ["an addition of a compaction", "messages", compacted({ type: "tool_addition", tool: DATED })],
  ["the changes of a compaction", "messages", compacted(DATED)],
  ["a message", "chat", { messages: [{ ...HI, tool: SEARCH }] }],
  ["a part", "chat", { messages: [{ ...HI, content: [{ type: "text", text: "hi", tool: SEARCH }] }] }],
  ["an item", "responses", itemed({ tool: SEARCH })],
  ["a tool of an item", "responses", itemed({ tools: [{ ...OWN.responses, tool: SEARCH }] })],
];

for (const [where, protocol, fields] of REFUSED) {
  test(`${protocol}: a hosted tool in ${where} is refused without a price`, async () => {
    const sent = here.simulator.count;
    const reply = await ask(here, protocol, account.key, { tools: [OWN[protocol]], ...fields });
    const { cause, message } = await errorOf(reply);
    assert.deepEqual([reply.status, cause], [400, "unsupported_parameter"]);
    assert.match(message, /The hosted tool "web_search(_20250305)?" is not offered for this model\./);
    assert.equal(here.simulator.count, sent, "nothing is sent to the upstream");
    await assertAtRest(here, account);
  });
}

const PASSED: readonly (readonly [what: string, Protocol, Fields])[] = [
  ["the name of a client's own tool", "messages", added(referringTo("tool_addition", "own"))],
  [
    "the name of an MCP server's tool",
    "messages",
    added({ type: "tool_removal", tool: { type: "mcp_tool_reference", server_name: "m", name: "web_search" } }),
  ],
  [
    "the name of a server's toolset",
    "messages",
    compacted({ type: "tool_removal", tool: { type: "mcp_toolset_reference", server_name: "m" } }),
  ],
  ["a text with these words", "messages", { messages: [{ role: "user", content: JSON.stringify({ tool: DATED }) }] }],
  [
    "the input of a call",
    "messages",
    {
      messages: [
        HI,
        { role: "assistant", content: [{ ...CALLED.content[0], input: { tool: DATED } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "r" }] },
      ],
    },
  ],
  [
    "a schema",
    "chat",
    {
      tools: [
        {
          type: "function",
          function: { name: "own", parameters: { type: "object", properties: { tool: SEARCH, definition: SEARCH } } },
        },
      ],
    },
  ],
  [
    "a schema",
    "responses",
    itemed({ tools: [{ ...OWN.responses, parameters: { type: "object", properties: { tool: SEARCH } } }] }),
  ],
];

for (const [what, protocol, fields] of PASSED) {
  test(`${protocol}: ${what} is no tool`, async () => {
    const reply = await ask(here, protocol, account.key, { tools: [OWN[protocol]], ...fields });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    assert.equal(reply.headers.get("x-tollgate-translation"), null);
    const member = protocol === "responses" ? "input" : "messages";
    const sent = JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "");
    if (member in fields) assert.deepEqual(sent[member], fields[member]);
    await assertAtRest(here, account);
  });
}

function referringTo(type: "tool_addition" | "tool_removal", name: string): Fields {
  return { type, tool: { type: "tool_reference", name } };
}

test("messages: a reference to a hosted tool with a price passes", async () => {
  const changes = added(referringTo("tool_removal", "web_search"), referringTo("tool_addition", "web_search"));
  const reply = await ask(here, "messages", account.key, { tools: [DATED], ...changes, model: "messages-priced" });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  assert.deepEqual(JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "").messages, changes.messages);
  await assertAtRest(here, account);
});

test("messages: with a price it is sent, and its calls are charged", async () => {
  const buyer = await here.account();
  const usage = { input_tokens: 400, output_tokens: 50, server_tool_use: { web_search_requests: 2 } };
  const content = [{ type: "text", text: "found" }];
  here.simulator.program({
    body: { id: "m", type: "message", role: "assistant", model: "m", content, stop_reason: "end_turn", usage },
  });
  const fields = { tools: [OWN.messages], ...added({ type: "tool_addition", tool: DATED }) };
  const reply = await ask(here, "messages", buyer.key, { ...fields, model: "messages-priced" });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  await assertAtRest(here, buyer);
  const [line] = await usageLines(here, buyer);
  assert.equal(line?.amount, 400n * 1_000n + 50n * 10_000n + 2n * 10_000_000n);
});
