/**
 * ARCHITECTURE.md promise 14: a hosted tool that a messages client adds in the middle of its conversation (`tool_addition`)
 * cannot be bought without its price, on any route, and with a price its calls are charged.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, usageLines } from "./asking.ts";

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

const SEARCH = { type: "web_search_20250305", name: "search" };
const FIELDS = {
  tools: [{ name: "own", input_schema: { type: "object" } }],
  messages: [
    { role: "user", content: "hi" },
    {
      role: "system",
      content: [{ type: "tool_addition", tool: { type: "tool_definition", definition: SEARCH } }],
    },
  ],
};

test("without a price, a messages model refuses it, and its server gets nothing", async () => {
  const before = here.simulator.count;
  const reply = await ask(here, "messages", account.key, FIELDS);
  const { cause, message } = await errorOf(reply);
  assert.deepEqual([reply.status, cause], [400, "unsupported_parameter"]);
  assert.match(message, /The hosted tool "web_search_20250305" is not offered for this model\./);
  assert.equal(here.simulator.count, before);
  await assertAtRest(here, account);
});

for (const model of ["chat-1", "responses-1"]) {
  test(`without a price, ${model} is not offered it, and the answer names it`, async () => {
    const reply = await ask(here, "messages", account.key, { ...FIELDS, model });
    assert.equal(reply.status, 200, await reply.clone().text());
    assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=tools.web_search");
    assert.ok(!here.simulator.requests.at(-1)?.body.toString().includes("search"));
    await assertAtRest(here, account);
  });
}

test("with a price, its server gets it, and its calls are charged", async () => {
  const buyer = await here.account();
  const usage = { input_tokens: 400, output_tokens: 50, server_tool_use: { web_search_requests: 2 } };
  const content = [{ type: "text", text: "found" }];
  here.simulator.program({
    body: { id: "m", type: "message", role: "assistant", model: "m", content, stop_reason: "end_turn", usage },
  });
  const reply = await ask(here, "messages", buyer.key, { ...FIELDS, model: "messages-priced" });
  assert.equal(reply.status, 200, await reply.clone().text());
  assert.deepEqual(JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "").messages, FIELDS.messages);
  await assertAtRest(here, buyer);
  const [line] = await usageLines(here, buyer);
  assert.equal(line?.amount, 400n * 1_000n + 50n * 10_000n + 2n * 10_000_000n);
});
