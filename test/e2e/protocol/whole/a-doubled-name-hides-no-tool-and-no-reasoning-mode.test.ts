/**
 * ARCHITECTURE.md promise 14: parsers differ in which of two members with one name counts. A second `tools` or `tool` in a
 * message, or a second `reasoning` in an item, must not hide the first one from the gateway alone.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

const SEARCH = '{"type":"web_search_20250305","name":"web_search"}';
const HI = '{"role":"user","content":"hi"}';
const ROOT = { chat: "messages", messages: "messages", responses: "input" } as const;
const LIMIT = { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" } as const;

/** Sends a conversation with this message or item. */
function say(protocol: Protocol, said: string): Promise<Response> {
  const raw = `{"model":"${protocol}-1","${LIMIT[protocol]}":50,"${ROOT[protocol]}":[${HI},${said}]}`;
  return ask(here, protocol, account.key, {}, { raw });
}

const OF_MESSAGES: readonly (readonly [param: string, said: string])[] = [
  ["tools", `{"role":"user","content":"a","tools":[${SEARCH}],"tools":[]}`],
  ["tool", `{"role":"user","content":"a","tool":${SEARCH},"tool":null}`],
  ["tool", `{"role":"user","content":"a","tool" \n:${SEARCH},"tool" :null}`],
  ["type", `{"role":"user","content":"a","tools":[{"type":"web_search","type":null,"name":"own"}]}`],
];
const OF_ITEMS: readonly (readonly [param: string, said: string])[] = [
  ["reasoning", '{"type":"configuration_update","reasoning":{"mode":"pro"},"reasoning":{}}'],
  ["mode", '{"type":"configuration_update","reasoning":{"mode":"pro","mode":"standard"}}'],
  ["type", `{"type":"configuration_update","reasoning":{"mode":"pro"},"type":"message","role":"user","content":"a"}`],
];
const REFUSED = [
  ...(["chat", "messages", "responses"] as const).flatMap((protocol) =>
    OF_MESSAGES.map(([param, said]) => ({ protocol, param, said })),
  ),
  ...OF_ITEMS.map(([param, said]) => ({ protocol: "responses" as const, param, said })),
];

for (const { protocol, param, said } of REFUSED) {
  test(`${protocol}: a second "${param}" is refused: ${said.replace("\n", " ")}`, async () => {
    const sent = here.simulator.count;
    const reply = await say(protocol, said);
    const found = await errorOf(reply);
    assert.deepEqual([reply.status, found.cause], [400, "duplicate_field"]);
    assert.match(found.message, new RegExp(`"\\w+\\[\\]\\.${param}"`));
    assert.equal(here.simulator.count, sent, "nothing is sent to the upstream");
    await assertAtRest(here, account);
  });
}

test("the role of a tool's result, and these words in a text, pass unchanged", async () => {
  const call =
    '{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"own","arguments":"{}"}}]}';
  const said = `${call},{"role":"tool","tool_call_id":"c","content":"\\"tool\\": 1, \\"tool\\": 2, \\"tools\\": []"}`;
  const reply = await say("chat", said);
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  assert.ok(here.simulator.requests.at(-1)?.body.includes(said));
  await assertAtRest(here, account);
});
