/**
 * docs/translation-rules.md rules 21 and 33: no server gets a conversation that is empty because a hosted tool, or its work, was left out. Its 400 would be
 * about a body that the client has not sent.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

const SEARCH = { type: "web_search_20250305", name: "web_search" };
const OWN = { name: "own", input_schema: { type: "object" } };
const change = { type: "tool_removal", tool: { type: "tool_reference", name: "web_search" } };
const result = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
const NOT_OFFERED =
  /The hosted tool "web_search(_20250305)?" is not offered for this model, and nothing else is in the/;
const NO_USER = /There must be at least one user message\./;

const ROWS: readonly (readonly [string, Protocol, string, Fields, RegExp])[] = [
  [
    "a system message with a change of it",
    "messages",
    "messages-1",
    { tools: [OWN, SEARCH], messages: [{ role: "system", content: [change] }] },
    NOT_OFFERED,
  ],
  [
    "an item that offers it",
    "responses",
    "responses-1",
    {
      tools: [{ type: "function", name: "own" }],
      input: [{ type: "additional_tools", role: "developer", tools: [{ type: "web_search" }] }],
    },
    NOT_OFFERED,
  ],
  ["its result", "messages", "chat-1", { messages: [{ role: "user", content: [result] }] }, NO_USER],
  ["its result", "messages", "responses-1", { messages: [{ role: "user", content: [result] }] }, NO_USER],
];

for (const [only, client, model, fields, said] of ROWS) {
  test(`${client} on ${model}: only ${only}: 400, and nothing is sent`, async () => {
    const sent = here.simulator.count;
    const reply = await ask(here, client, account.key, { model, ...fields });
    assert.equal(reply.status, 400);
    assert.match((await errorOf(reply)).message, said);
    assert.equal(here.simulator.count, sent);
    await assertAtRest(here, account);
  });
}

for (const model of ["chat-1", "responses-1"]) {
  test(`a user's message with nothing but a result is left out for ${model}`, async () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "hello" },
      { role: "user", content: [result] },
      { role: "user", content: "more" },
    ];
    const reply = await ask(here, "messages", account.key, { model, messages });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    const { messages: chat, input } = JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "");
    const roles = ((chat ?? input) as readonly { role: string }[]).map(({ role }) => role);
    assert.deepEqual(roles, ["user", "assistant", "user"]);
    await assertAtRest(here, account);
  });
}
