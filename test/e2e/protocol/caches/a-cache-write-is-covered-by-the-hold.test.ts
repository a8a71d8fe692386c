/**
 * ARCHITECTURE.md promise 1 where the gateway itself asks for caching: the hold covers the price of the cache write.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, usageLines } from "../whole/asking.ts";

/** Fifty times the price of input: a hold for the input alone would be far too small. */
const PRICE = { input: "1", cached_input: "0.1", cache_write: "50", cache_write_1h: "50", output: "1" };
const BODY = { model: "messages-1", messages: [{ role: "user", content: "Look again. ".repeat(600) }], max_tokens: 16 };

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) => testConfig(places, { models: { "messages-1": { price: PRICE } } }),
  });
});
after(() => here.close());

test("a request that is written to the cache completely costs what was held, and nothing is absorbed", async () => {
  const account = await here.account({ usd: "1" });
  here.simulator.program({ usage: { input: 0, cacheWrite: 2_000, output: 10 } });
  const reply = await ask(here, "chat", account.key, BODY);
  assert.equal(reply.status, 200);
  const { usage } = (await reply.json()) as { usage: { prompt_tokens: number } };
  assert.equal(usage.prompt_tokens, 2_000);
  assert.match(here.simulator.requests.at(-1)?.body.toString() ?? "", /"cache_control":\{"type":"ephemeral"\}/);
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.equal(lines.length, 1, "nothing is absorbed, so there is no second line");
  assert.equal(lines[0]?.amount, BigInt(2_000 * 50_000 + 10 * 1_000));
});

test("an account that cannot pay for the cache write is refused before the upstream is called", async () => {
  const account = await here.account({ usd: "0.05" });
  const count = here.simulator.count;
  const reply = await ask(here, "chat", account.key, BODY);
  assert.equal(reply.status, 403);
  assert.equal(here.simulator.count, count);
});
