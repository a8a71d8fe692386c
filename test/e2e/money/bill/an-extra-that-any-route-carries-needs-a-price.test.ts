/**
 * ARCHITECTURE.md promise 14: what a request asks for in addition to tokens is refused without a price if any route of its model carries it.
 * The route is chosen later, and may be that one.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields } from "../../protocol/whole/asking.ts";

const ROUTES = { "carries-first": ["up-chat", "up-messages"], "carries-last": ["up-messages", "up-chat"] };

function config(places: ConfigPlaces): string {
  const price = { input: "1", output: "10" };
  const models = Object.entries(ROUTES).map(([name, upstreams]) => [
    name,
    { plans: ["free"], context_tokens: 200000, price, routes: upstreams.map((upstream) => ({ upstream })) },
  ]);
  return testConfig(places, (base) => ({
    models: Object.fromEntries(models),
    groups: { money: { models: [...base.groups.money.models, ...Object.keys(ROUTES)] } },
  }));
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
after(() => here.close());

const EXTRAS: readonly Fields[] = [
  { models: ["other"] },
  { web_search_options: {} },
  { tools: [{ type: "web_search" }] },
];

for (const model of Object.keys(ROUTES)) {
  for (const extra of EXTRAS) {
    const [member] = Object.keys(extra);
    test(`${model}: ${member} is refused, and nothing is sent`, async () => {
      const account = await here.account();
      const sent = here.simulator.requests.length;
      const reply = await ask(here, "chat", account.key, { model, ...extra });
      const { cause, param } = await errorOf(reply);
      assert.deepEqual([reply.status, cause, param], [400, "unsupported_parameter", member]);
      assert.equal(here.simulator.requests.length, sent);
      await assertAtRest(here, account);
    });
  }
}
