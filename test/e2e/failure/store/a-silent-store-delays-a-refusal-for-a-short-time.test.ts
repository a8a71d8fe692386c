/**
 * docs/failure-model.md row B3: the refusal of a request with an idempotency key waits until the store has freed the key, but not for a store
 * that does not answer. The key is freed when the store is back.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { testConfig } from "../../../rig/config.ts";
import { ask, errorOf } from "../../protocol/whole/asking.ts";
import { scene } from "./rig.ts";

const HEADERS = { "idempotency-key": "order-1" };

test("a rejected request gets its answer while Redis is behind a black hole", async (t) => {
  const { here, proxy, account, closed, opened } = await scene(t, {
    config: (places) => testConfig(places, { idempotency: { enabled: true } }),
  });
  here.simulator.program({ fault: { status: 400 } });
  here.simulator.hold();
  const asked = ask(here, "chat", account.key, {}, { headers: HEADERS });
  const inFlight = () => here.gateway.upstreams().find(({ name }) => name === "up-chat")?.inFlight;
  while (inFlight() !== 1) await new Promise((resolve) => setImmediate(resolve));
  proxy.blackHole(true);
  here.simulator.release();
  // The refusal waits for less than half a second. Otherwise it would wait until the store is back, which it is only after it.
  const reply = await asked;
  assert.deepEqual([reply.status, (await errorOf(reply)).cause], [400, "upstream_rejected"]);
  while ((await ask(here, "chat", account.key)).status !== 503);
  await opened();
  proxy.blackHole(false);
  await closed();
  const again = await ask(here, "chat", account.key, {}, { headers: HEADERS });
  assert.equal(again.status, 200);
  await again.arrayBuffer();
});
