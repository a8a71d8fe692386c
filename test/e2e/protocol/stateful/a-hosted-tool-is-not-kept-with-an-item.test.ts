/**
 * ARCHITECTURE.md promise 14 and docs/decisions/stateful-upstreams-get-wrapped-ids.md: a server that keeps a response keeps its items too, and offers the tools
 * in them to every request that continues it. Such a request does not name them: its searches were paid by nobody, and a model without a price for them had them.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, usageLines } from "../whole/asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere({
    simulator: { stateful: true, uniqueIds: true },
    config: (places) =>
      testConfig(places, (base) => {
        const model = base.models["responses-1"];
        const price = { ...model.price, tools: { web_search: "0.01" } };
        const { "up-responses": plain } = base.upstreams;
        return {
          upstreams: { "up-responses": { stateful: true }, "up-plain": plain },
          models: {
            "responses-1": { price },
            either: { ...model, price, routes: [{ upstream: "up-responses" }, { upstream: "up-plain", priority: 2 }] },
          },
          groups: { money: { models: ["*"] } },
        };
      }),
  });
  account = await here.account();
});
after(() => here.close());

const SEARCH = { type: "web_search" };
const OWN = { type: "function", name: "own" };
const HI = { role: "user", content: "hi" };
const offering = (...tools: readonly Fields[]) => [{ type: "additional_tools", role: "developer", tools }, HI];

const REFUSED: readonly (readonly [string, Fields])[] = [
  ["an item that offers it", { input: offering(OWN, SEARCH) }],
  ["an item after one with own tools", { input: [...offering(OWN), ...offering(SEARCH)] }],
  ["an item with one tool in place of a list", { input: [{ ...offering()[0], tools: undefined, tool: SEARCH }, HI] }],
  ["a namespace in an item", { input: offering({ type: "namespace", name: "n", description: "d", tools: [SEARCH] }) }],
  [
    "the result of a client's search for tools",
    {
      input: [
        HI,
        { type: "tool_search_call", call_id: "c", execution: "client", arguments: {} },
        { type: "tool_search_output", call_id: "c", execution: "client", tools: [SEARCH] },
      ],
    },
  ],
];

for (const [where, fields] of REFUSED) {
  for (const store of [undefined, null, true]) {
    test(`in ${where}, with store ${store}: 400, and nothing is sent`, async () => {
      const sent = here.simulator.count;
      const reply = await ask(here, "responses", account.key, { tools: [OWN], ...fields, store });
      const { cause, message, remedy, param } = await errorOf(reply);
      assert.deepEqual([reply.status, cause], [400, "unsupported_parameter"]);
      assert.match(message, /keep the hosted tool "web_search" with this item/);
      assert.match(remedy, /Offer it in "tools" of each request/);
      assert.match(param ?? "", /^input\[\d\]\.tools$/);
      assert.equal(here.simulator.count, sent);
      await assertAtRest(here, account);
    });
  }
}

/** What is not kept, or does not outlive its request. */
const PASSED: readonly (readonly [string, Fields])[] = [
  ["an item of a request that stores nothing", { input: offering(SEARCH), store: false }],
  ["the request's own tools", { input: "hi", tools: [SEARCH], store: true }],
  ["a client's own tool in an item", { input: offering(OWN), store: true }],
  [
    "what an MCP server has listed",
    {
      input: [HI, { type: "mcp_list_tools", server_label: "m", tools: [{ name: "x", input_schema: {} }] }],
      store: true,
    },
  ],
];

for (const [what, fields] of PASSED) {
  test(`${what} goes upstream`, async () => {
    const reply = await ask(here, "responses", account.key, fields);
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    const sent = here.simulator.requests.at(-1)?.json as Fields;
    assert.deepEqual([sent.input, sent.tools], [fields.input, fields.tools]);
    await assertAtRest(here, account);
  });
}

test("a model that also has an upstream without a memory uses that one", async () => {
  const reply = await ask(here, "responses", account.key, { model: "either", input: offering(SEARCH), store: true });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  const sent = here.simulator.requests.at(-1)?.json as Fields;
  assert.equal(sent.store, false);
  await assertAtRest(here, account);
});

test("a request that continues a response pays for the searches of the tool that it offers", async () => {
  const buyer = await here.account();
  const first = await ask(here, "responses", buyer.key, { store: true });
  const { id } = (await first.json()) as { id: string };
  const usage = { input_tokens: 400, output_tokens: 50, total_tokens: 450 };
  const content = [{ type: "output_text", text: "found", annotations: [] }];
  here.simulator.program({
    body: {
      ...{ id: "resp_2", object: "response", status: "completed" },
      output: [{ type: "message", id: "msg_2", role: "assistant", status: "completed", content }],
      usage: { ...usage, server_side_tool_usage_details: { web_search_calls: 3 } },
    },
  });
  const reply = await ask(here, "responses", buyer.key, { store: true, previous_response_id: id, tools: [SEARCH] });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  await assertAtRest(here, buyer);
  const lines = await usageLines(here, buyer);
  assert.deepEqual(
    lines.map(({ kind }) => kind),
    ["usage", "usage"],
  );
  assert.equal(lines[1]?.amount, 400n * 1_000n + 50n * 10_000n + 3n * 10_000_000n);
});
