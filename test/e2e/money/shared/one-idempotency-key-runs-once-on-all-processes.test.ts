// docs/decisions/idempotency-keeps-no-bodies.md: an idempotency key belongs to the account, whichever process gets the
// request. The key of a process that died is free again when the hold expires, by the store's clock.
import assert from "node:assert/strict";
import test from "node:test";
import { ask, chat, fundsOf, HOLD_LIFE_MS, ledgerOf, openAccount, priceOf, startDeployment } from "./rig.ts";

const START_MS = Date.UTC(2026, 5, 1, 12);
const AT_ONCE = 30;
const BODY = chat({ maxTokens: 16 });
const KEY = { "idempotency-key": "order-1" };

test("of thirty concurrent requests per key on three processes, one is answered and charged, for each of five keys", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 3 });
  try {
    const [first] = deployment.gateways;
    assert.ok(first);
    const { cost } = await priceOf(first, BODY);
    const { name, key } = await openAccount(first, { funds: 10_000_000_000n });
    for (let round = 1; round <= 5; round++) {
      const headers = { "idempotency-key": `order-${round}` };
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, i) => {
          const gateway = deployment.gateways[i % deployment.gateways.length];
          assert.ok(gateway);
          return ask(gateway, key, BODY, headers);
        }),
      );
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [200, ...Array.from({ length: AT_ONCE - 1 }, () => 409)]);
    }
    const usage = (await ledgerOf(first, name)).filter((line) => line.kind === "usage");
    assert.equal(usage.length, 5);
    assert.deepEqual(await fundsOf(first, name), { balance: 10_000_000_000n - 5n * cost, held: 0n });
  } finally {
    await deployment.close();
  }
});

test("the key of a process that died is free when its hold expires", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 2, faketime: true });
  const { simulator, redis } = deployment;
  try {
    const [victim, other] = deployment.gateways;
    assert.ok(victim && other && redis);
    redis.setTime(START_MS);
    const { name, key } = await openAccount(other, { funds: 1_000_000_000n });
    const before = simulator.count;
    simulator.hold();
    const cut = assert.rejects(ask(victim, key, BODY, KEY));
    await simulator.waitFor(before + 1);
    await victim.stop("SIGKILL");
    await cut;
    simulator.release();
    redis.setTime(START_MS + HOLD_LIFE_MS - 1);
    assert.equal((await ask(other, key, BODY, KEY)).cause, "idempotency_in_progress");
    redis.setTime(START_MS + HOLD_LIFE_MS);
    assert.equal((await ask(other, key, BODY, KEY)).status, 200);
    assert.equal((await ask(other, key, BODY, KEY)).cause, "idempotency_finished");
    assert.equal((await ledgerOf(other, name)).filter((line) => line.kind === "usage").length, 1);
  } finally {
    await deployment.close();
  }
});
