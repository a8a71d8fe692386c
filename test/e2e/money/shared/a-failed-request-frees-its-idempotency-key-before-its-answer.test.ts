/**
 * docs/api.md: a request that charges nothing frees its idempotency key. A client that sends it again at another process as soon as it
 * has the answer is not told that the first one is still running.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, chat, fundsOf, openAccount, startDeployment } from "./rig.ts";

const FUNDS = 1_000_000_000n;
const TIMES = 20;

test("a refused request is repeated at once, twenty times from one process to another", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 2 });
  try {
    const [first, second] = deployment.gateways;
    assert.ok(first && second);
    const { name, key } = await openAccount(first, { funds: FUNDS });
    deployment.simulator.program({ fault: { status: 400 } }, { times: Number.POSITIVE_INFINITY });
    const causes = new Map<string | undefined, number>();
    for (let time = 0; time < TIMES; time++) {
      const headers = { "idempotency-key": `order-${time}` };
      const body = chat({ maxTokens: 16, stream: time % 2 === 0 });
      for (const gateway of [first, second]) {
        const { cause } = await ask(gateway, key, body, headers);
        causes.set(cause, (causes.get(cause) ?? 0) + 1);
      }
    }
    assert.deepEqual([...causes], [["upstream_rejected", TIMES * 2]]);
    assert.deepEqual(await fundsOf(first, name), { balance: FUNDS, held: 0n });
  } finally {
    await deployment.close();
  }
});
