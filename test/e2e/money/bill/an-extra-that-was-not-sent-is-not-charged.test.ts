/**
 * Promise 3: an extra (`price.options`) is charged only if its member was sent to the upstream. A translation leaves
 * such members out, also on the way to a server that knows all of OpenAI's (`openai_native`). Before, they were charged
 * there, and refused without a price.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, memoOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";

const PRICED = { input: "1", output: "10", options: { models: "0.25", fallbacks: "0.5", web_search_options: "0.125" } };

function config(places: ConfigPlaces): string {
  const native = { plans: ["free"], context_tokens: 200000, capabilities: { openai_native: true } };
  const model = (upstream: Protocol, price: Fields) => ({ ...native, price, routes: [{ upstream: `up-${upstream}` }] });
  const models = PROTOCOL_LIST.flatMap((one) => [
    [`${one}-priced`, model(one, PRICED)],
    [`${one}-plain`, model(one, { input: "1", output: "10" })],
  ]);
  return testConfig(places, (base) => ({
    models: Object.fromEntries(models),
    groups: { money: { models: [...base.groups.money.models, ...models.map(([name]) => String(name))] } },
  }));
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
after(() => here.close());

const MODELS = { models: ["other"] };
const FALLBACKS = { fallbacks: [{ model: "other" }] };
const SEARCH = { web_search_options: {} };

type Row = readonly [client: Protocol, upstream: Protocol, fields: Fields, sent: boolean, usd: number];
const ROWS: readonly Row[] = [
  ["messages", "chat", FALLBACKS, false, 0],
  ["messages", "responses", FALLBACKS, false, 0],
  ["chat", "responses", MODELS, false, 0],
  ["responses", "chat", MODELS, false, 0],
  ["chat", "chat", MODELS, true, 0.25],
  ["messages", "messages", FALLBACKS, true, 0.5],
  ["chat", "responses", SEARCH, true, 0.125],
];

for (const [client, upstream, fields, sent, usd] of ROWS) {
  const [member = ""] = Object.keys(fields);
  test(`${client} client, ${upstream} upstream: ${member} is ${sent ? "" : "not "}sent and costs ${usd} USD`, async () => {
    const account = await here.account();
    const reply = await ask(here, client, account.key, { model: `${upstream}-priced`, ...fields });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    const body = here.simulator.requests.at(-1)?.body.toString() ?? "";
    assert.equal(body.includes(member === "web_search_options" ? "web_search" : member), sent);
    if (!sent) assert.match(reply.headers.get("x-tollgate-translation") ?? "", new RegExp(`dropped=${member}`));
    await assertAtRest(here, account);
    const [line] = await usageLines(here, account);
    const tokens = BigInt(memoOf(line).input as number) * 1_000n + BigInt(memoOf(line).output as number) * 10_000n;
    assert.equal(line?.amount, tokens + BigInt(Math.round(usd * 1e9)));
  });

  if (sent) continue;
  test(`${client} client, ${upstream} upstream: ${member} without a price is left out, not refused`, async () => {
    const account = await here.account();
    const reply = await ask(here, client, account.key, { model: `${upstream}-plain`, ...fields });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    await assertAtRest(here, account);
  });
}
