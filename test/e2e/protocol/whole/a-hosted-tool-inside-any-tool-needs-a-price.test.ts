/**
 * Promise 14: only namespaces contain tools, but a server may read those of any other tool as well. So a hosted tool in
 * one needs a price like all others. Before, it was passed without one.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

const SEARCH = { web: { type: "web_search" }, dated: { type: "web_search_20250305", name: "web_search" } };

const ROWS: readonly (readonly [client: Protocol, tool: Fields, own: Fields])[] = [
  ["responses", { type: "function", name: "f", tools: [SEARCH.web] }, { type: "function", name: "f" }],
  ["messages", { type: "bash_20250124", name: "bash", tools: [SEARCH.dated] }, { type: "bash_20250124", name: "bash" }],
];

for (const [client, tool, own] of ROWS) {
  test(`${client}: the client's own tool is sent without a hosted one inside that has no price`, async () => {
    const { key, tag } = await here.account();
    const reply = await ask(here, client, key, { tools: [tool] });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    assert.match(reply.headers.get("x-tollgate-translation") ?? "", /dropped=tools\.web_search/);
    const sent = here.simulator.requests.at(-1);
    assert.ok(sent);
    assert.equal(sent.body.includes("web_search"), false);
    const [first] = (sent.json as { tools: Fields[] }).tools;
    assert.deepEqual({ ...first, tools: undefined }, { ...own, tools: undefined });
    await assertAtRest(here, { tag });
  });

  test(`${client}: a strict request with such a tool is refused`, async () => {
    const { key } = await here.account();
    const reply = await ask(here, client, key, { tools: [tool] }, { headers: { "x-tollgate-strict": "1" } });
    assert.equal(reply.status, 400);
    assert.equal((await errorOf(reply)).cause, "unsupported_parameter");
  });
}
