/**
 * ARCHITECTURE.md promise 14: a name in place of a tool could be one of the server's own tools, which it runs and bills. No protocol has this form, so it is
 * refused. Before, it was passed on a route of the client's own protocol.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST } from "./asking.ts";

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
