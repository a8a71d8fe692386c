/**
 * docs/failure-model.md row E2: the clocks of two gateways are ten minutes ahead and ten minutes behind, and nothing
 * changes.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { GatewayProcess } from "../../../rig/gateway.ts";
import { machineClock } from "../../../rig/machine-clock.ts";
import {
  admin,
  ask,
  chat,
  type Deployment,
  ledgerOf,
  nano,
  openAccount,
  startDeployment,
  untilNothingHeld,
} from "../../money/shared/rig.ts";

const FUNDS = 10_000_000_000n;
const APART_S = 600;

async function two(
  run: (deployment: Deployment, first: GatewayProcess, second: GatewayProcess) => Promise<void>,
): Promise<void> {
  const clocks = [machineClock(APART_S), machineClock(-APART_S)];
  try {
    // The store's clock does not move, so that a bucket's figures are exact.
    const deployment = await startDeployment({ store: "redis", gateways: 2, faketime: true, clocks });
    try {
      const [first, second] = deployment.gateways;
      assert.ok(first && second);
      await run(deployment, first, second);
      const apartMs = Math.abs(lastTimeOf(first) - lastTimeOf(second));
      assert.ok(apartMs > (2 * APART_S - 60) * 1_000, "the clocks differ");
    } finally {
      await deployment.close();
    }
  } finally {
    for (const clock of clocks) clock.close();
  }
}

/** When the process logged that its last request ended, by its own clock. */
function lastTimeOf(gateway: GatewayProcess): number {
  const line = gateway
    .output()
    .split("\n")
    .findLast((text) => text.includes('"msg":"request"'));
  const { time } = JSON.parse(line ?? "{}") as { time: string | number };
  return new Date(time).getTime();
}

test("two gateways share one bucket, and the next request on either sees a change made on the other", async () => {
  await two(async (_house, first, second) => {
    const { key, keyId, name } = await openAccount(second, { funds: FUNDS, group: "sixty-a-minute" });
    let admitted = 0;
    for (let i = 0; i < 64; i++) {
      const answer = await ask(i % 2 === 0 ? first : second, key, chat());
      if (answer.status === 200) admitted += 1;
      else assert.equal(answer.cause, "requests");
    }
    assert.equal(admitted, 60);
    await admin(second, "PUT", `/keys/${keyId}/group`, { group: "money" });
    assert.equal((await ask(first, key, chat())).status, 200);
    await admin(first, "POST", `/keys/${keyId}/revoke`, {});
    assert.equal((await ask(second, key, chat())).cause, "revoked_key");
    const { balance } = await untilNothingHeld(first, name);
    const lines = (await ledgerOf(second, name)).filter((line) => line.kind === "usage");
    assert.equal(lines.length, 61);
    const spent = lines.reduce((sum, line) => sum + nano(line.usd), 0n);
    assert.equal(balance, FUNDS - (spent < 0n ? -spent : spent));
  });
});

test("neither gateway takes the other's running requests for old ones", async () => {
  await two(async ({ simulator }, first, second) => {
    const { key, name } = await openAccount(first, { funds: FUNDS, group: "five-at-a-time" });
    simulator.hold();
    const running = [first, second, first, second, first].map((gateway) => ask(gateway, key, chat({ stream: true })));
    await simulator.waitFor(5);
    for (const gateway of [first, second]) assert.equal((await ask(gateway, key, chat())).cause, "concurrency");
    simulator.release();
    for (const answer of await Promise.all(running)) assert.equal(answer.status, 200);
    await untilNothingHeld(second, name);
    const charges = (await ledgerOf(first, name)).filter((line) => line.kind === "usage");
    assert.equal(new Set(charges.map((line) => line.reference)).size, 5);
    assert.equal(charges.length, 5);
  });
});
