// docs/failure-model.md rows A1 and A2 without a journal: a process that dies during a request that has delivered
// nothing leaves a hold. The hold lasts a minute longer than a request may, then the money is free again; nothing is
// charged.
import assert from "node:assert/strict";
import test from "node:test";
import type { GatewayProcess } from "../../../rig/gateway.ts";
import { ask, chat, fundsOf, HOLD_LIFE_MS, ledgerOf, openAccount, priceOf, startDeployment } from "./rig.ts";

const START_MS = Date.UTC(2026, 5, 1, 12);
/** The cut request takes all the funds and the only concurrency slot. */
const GROUP = "one-at-a-time";
const BODY = chat({ maxTokens: 16 });

/** Starts a request that waits for its upstream, and kills its gateway; resolves when the process has ended. */
async function killInTheMiddle(gateway: GatewayProcess, key: string, arrived: () => Promise<void>): Promise<void> {
  const cut = assert.rejects(ask(gateway, key, BODY));
  await arrived();
  await gateway.stop("SIGKILL");
  await cut;
}

test("Redis: another process can use the money when the hold expires", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 2, faketime: true });
  const { simulator, redis } = deployment;
  try {
    const [victim, other] = deployment.gateways;
    assert.ok(victim && other && redis);
    redis.setTime(START_MS);
    const { hold, cost } = await priceOf(other, BODY);
    const { name, key } = await openAccount(other, { funds: hold, group: GROUP });
    const before = simulator.count;
    simulator.hold();
    await killInTheMiddle(victim, key, () => simulator.waitFor(before + 1));
    simulator.release();
    assert.deepEqual(await fundsOf(other, name), { balance: hold, held: hold });
    redis.setTime(START_MS + HOLD_LIFE_MS - 1);
    assert.equal((await ask(other, key, BODY)).cause, "insufficient_balance");
    redis.setTime(START_MS + HOLD_LIFE_MS);
    assert.equal((await ask(other, key, BODY)).status, 200);
    const kinds = (await ledgerOf(other, name)).map((line) => line.kind);
    assert.deepEqual(kinds, ["topup", "usage"]);
    assert.deepEqual(await fundsOf(other, name), { balance: hold - cost, held: 0n });
  } finally {
    await deployment.close();
  }
});

test("embedded: holds live in memory, so after a restart the money is free at once", async () => {
  const deployment = await startDeployment({ store: "embedded" });
  const { simulator } = deployment;
  try {
    const [victim] = deployment.gateways;
    assert.ok(victim);
    const { hold, cost } = await priceOf(victim, BODY);
    const { name, key } = await openAccount(victim, { funds: hold, group: GROUP });
    const before = simulator.count;
    simulator.hold();
    await killInTheMiddle(victim, key, () => simulator.waitFor(before + 1));
    simulator.release();
    const next = await deployment.open();
    assert.deepEqual(await fundsOf(next, name), { balance: hold, held: 0n });
    assert.equal((await ask(next, key, BODY)).status, 200);
    const kinds = (await ledgerOf(next, name)).map((line) => line.kind);
    assert.deepEqual(kinds, ["topup", "usage"]);
    assert.deepEqual(await fundsOf(next, name), { balance: hold - cost, held: 0n });
  } finally {
    await deployment.close();
  }
});
