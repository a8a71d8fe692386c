/**
 * docs/translation-rules.md rule 33: a compaction block goes back as its server has signed it. So if it refers to a hosted tool that is left out, the request is
 * refused and says so. Before, its server got a reference that led nowhere, and answered 400 (`tool_reference_unresolved`).
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields } from "./asking.ts";

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

const TOOLS = [
  { name: "own", input_schema: { type: "object" } },
  { type: "web_search_20250305", name: "web_search" },
];

const compacted = (type: string, name: string) => ({
  tools: TOOLS,
  messages: [
    {
      role: "assistant",
      content: [
        {
          type: "compaction",
          content: "s",
          signature: "g",
          tool_changes: [{ type, tool: { type: "tool_reference", name } }],
        },
      ],
    },
    { role: "user", content: "more" },
  ],
});

for (const type of ["tool_addition", "tool_removal"]) {
  test(`${type} of a hosted tool without a price: 400 that names the place`, async () => {
    const sent = here.simulator.count;
    const reply = await ask(here, "messages", account.key, compacted(type, "web_search"));
    const { cause, message, remedy } = await errorOf(reply);
    assert.deepEqual([reply.status, cause], [400, "unsupported_parameter"]);
    assert.match(message, /^messages\.0\.content\.0\.tool_changes: .* refers to a hosted tool that is not offered/);
    assert.match(remedy, /send the messages that the block has replaced/);
    assert.equal(here.simulator.count, sent);
    await assertAtRest(here, account);
  });

  test(`${type} of a hosted tool with a price goes upstream unchanged`, async () => {
    const fields = compacted(type, "web_search");
    const reply = await ask(here, "messages", account.key, { ...fields, model: "messages-priced" });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    const sent = JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "");
    assert.deepEqual(sent.messages, fields.messages);
    await assertAtRest(here, account);
  });

  test(`${type} of the client's own tool goes upstream, and the hosted one is left out`, async () => {
    const fields = compacted(type, "own");
    const reply = await ask(here, "messages", account.key, fields);
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    const sent = JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "");
    assert.deepEqual([sent.messages, sent.tools], [fields.messages, [TOOLS[0]]]);
    await assertAtRest(here, account);
  });
}

test("the second change of the second block is found as well, and the refusal names its block", async () => {
  const { tools, messages } = compacted("tool_addition", "own");
  const [{ role, content } = { role: "assistant", content: [] }, user] = messages;
  const [block] = content as readonly Fields[];
  const changes = ["own", "web_search"].map((name) => ({
    type: "tool_addition",
    tool: { type: "tool_reference", name },
  }));
  const fields = { tools, messages: [{ role, content: [block, { ...block, tool_changes: changes }] }, user] };
  const reply = await ask(here, "messages", account.key, fields);
  const { cause, message } = await errorOf(reply);
  assert.deepEqual([reply.status, cause], [400, "unsupported_parameter"]);
  assert.match(message, /^messages\.0\.content\.1\.tool_changes: /);
  await assertAtRest(here, account);
});
