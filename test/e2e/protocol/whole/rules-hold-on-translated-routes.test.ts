/**
 * Rules are written for the upstream's protocol, whatever the client's: on a translated route they apply to the
 * translated body.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, bodyOf, PROTOCOL_LIST } from "./asking.ts";

const RULES = [
  { system: { text: "Answer in English." } },
  { drop: ["temperature"] },
  { protocol: "chat", set: { logprobs: false } },
  { protocol: "messages", set: { thinking: { type: "disabled" } } },
  { protocol: "responses", default: { "text.verbosity": "low" } },
  { strip_attribution: true },
] as const;

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) => testConfig(places, { groups: { money: { rules: RULES } } }),
    simulator: { strict: true },
  });
});
after(() => here.close());

type Seen = Record<string, unknown>;
const seen = () => here.simulator.requests.at(-1)?.json as Seen;

/** What a server of each protocol must find in its body. */
const FOUND: Readonly<Record<(typeof PROTOCOL_LIST)[number], (json: Seen) => void>> = {
  chat(json) {
    assert.deepEqual((json.messages as unknown[])[0], { role: "system", content: "Answer in English." });
    assert.equal(json.logprobs, false);
    assert.equal(json.thinking, undefined);
  },
  messages(json) {
    assert.equal(json.system, "Answer in English.");
    assert.deepEqual(json.thinking, { type: "disabled" });
    assert.equal(json.logprobs, undefined);
  },
  responses(json) {
    assert.equal(json.instructions, "Answer in English.");
    assert.equal((json.text as Seen).verbosity, "low");
    assert.equal(json.thinking, undefined);
  },
};

for (const client of PROTOCOL_LIST) {
  for (const upstream of PROTOCOL_LIST) {
    test(`${client} client, ${upstream} upstream: rules apply to the translated body`, async () => {
      const { key } = await here.account();
      const fields = { ...bodyOf(client), model: `${upstream}-1`, temperature: 0.5 };
      const reply = await ask(here, client, key, fields);
      assert.equal(reply.status, 200, await reply.text());
      assert.equal(seen().temperature, undefined);
      FOUND[upstream](seen());
    });
  }
}

test("the attribution line is removed on a route that is not translated", async () => {
  const { key } = await here.account();
  const line = { type: "text", text: "x-anthropic-billing-header: cc_version=2.1; cch=ab12;" };
  const own = { type: "text", text: "You are X", cache_control: { type: "ephemeral" } };
  assert.equal((await ask(here, "messages", key, { system: [line, own] })).status, 200);
  assert.deepEqual(seen().system, [own, { type: "text", text: "Answer in English." }]);
});
