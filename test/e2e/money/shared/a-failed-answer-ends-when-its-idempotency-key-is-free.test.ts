/**
 * docs/api.md: a request that charges nothing frees its idempotency key before its answer ends, also if its stream breaks
 * off or the gateway has a defect. A client that sends it again at another gateway as soon as it has the end is not told
 * that the first one is still running.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import type { Settings } from "../../../../src/values/settings.ts";
import { testConfig } from "../../../rig/config.ts";
import { startFaultProxy } from "../../../rig/fault-proxy.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { ask } from "../../protocol/whole/asking.ts";

/** How long the store takes for the first gateway: far longer than a client needs to repeat its request. */
const STORE_DELAY_MS = 60;

/** Two gateways over one Redis, which is slow for the first one. */
async function twoGateways(t: TestContext, settings: (settings: Settings) => Settings = (same) => same) {
  const redis = await startRedis();
  const proxy = await startFaultProxy(redis.port);
  const config = (places: Parameters<typeof testConfig>[0]) => testConfig(places, { idempotency: { enabled: true } });
  const first = await startGatewayHere({ config, store: proxy.url, settings });
  const second = await startGatewayHere({ config, store: redis.url });
  t.after(async () => {
    await first.close();
    await second.close();
    await proxy.close();
    await redis.stop();
  });
  const account = await second.account({ usd: "1000" });
  return { first, second, proxy, account };
}

const named = (name: string) => ({ headers: { "idempotency-key": name } });

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: a stream that breaks off before its first token is repeated at once at another gateway`, async (t) => {
    const { first, second, proxy, account } = await twoGateways(t);
    first.simulator.program({ fault: { resetAfterEvents: 1 } });
    proxy.delay(STORE_DELAY_MS);
    const broken = await ask(first, protocol, account.key, { stream: true }, named("order-1"));
    assert.equal(broken.status, 200);
    assert.match(await broken.text(), /"error"/);
    const again = await ask(second, protocol, account.key, { stream: true }, named("order-1"));
    assert.equal(again.status, 200, await again.text());
  });
}

test("a request that met a defect of the gateway is repeated at once at another gateway", async (t) => {
  const { first, second, proxy, account } = await twoGateways(t, (settings) => ({
    ...settings,
    get heartbeatMs(): number {
      throw new TypeError("a defect after the upstream has answered");
    },
  }));
  proxy.delay(STORE_DELAY_MS);
  const failed = await ask(first, "chat", account.key, { stream: true }, named("order-1"));
  assert.equal(failed.status, 500, await failed.text());
  const again = await ask(second, "chat", account.key, { stream: true }, named("order-1"));
  assert.equal(again.status, 200, await again.text());
});
