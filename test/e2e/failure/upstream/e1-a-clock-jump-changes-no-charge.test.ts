/**
 * docs/failure-model.md row E1: the wall clock of a gateway, or of Redis, is an hour ahead, an hour behind, or set back
 * by five seconds repeatedly.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { GatewayProcess } from "../../../rig/gateway.ts";
import { type MachineClock, machineClock } from "../../../rig/machine-clock.ts";
import {
  admin,
  ask,
  chat,
  type Deployment,
  fundsOf,
  ledgerOf,
  nano,
  newKey,
  openAccount,
  startDeployment,
  untilNothingHeld,
} from "../../money/shared/rig.ts";

const FUNDS = 10_000_000_000n;
const HOUR_S = 3_600;
/** The clock's errors, in seconds from the right time, one after the other. */
const JUMPS: readonly number[] = [HOUR_S, -HOUR_S, 0, ...Array.from({ length: 8 }, (_, at) => -5 * (at + 1)), 0];

/** Sends one whole and one streamed request; both are answered. @returns how many. */
async function askBoth(gateway: GatewayProcess, key: string): Promise<number> {
  for (const stream of [false, true]) {
    const answer = await ask(gateway, key, chat({ stream }));
    assert.equal(answer.status, 200, answer.text);
    if (stream) assert.match(answer.text, /\[DONE\]/);
  }
  return 2;
}

/** Asserts this many charges, each once, and that no other money has moved. */
async function assertBooks(gateway: GatewayProcess, name: string, charges: number): Promise<void> {
  const { balance } = await untilNothingHeld(gateway, name);
  const lines = (await ledgerOf(gateway, name)).filter((line) => line.kind === "usage");
  assert.equal(lines.length, charges);
  assert.equal(new Set(lines.map((line) => line.reference)).size, charges);
  const spent = lines.reduce((sum, line) => sum + nano(line.usd), 0n);
  assert.equal(balance, FUNDS - (spent < 0n ? -spent : spent));
}

/**
 * The log's durations must be right: they come from a clock that never jumps, while the clock that dates the lines
 * does.
 */
function assertLatencies(gateway: GatewayProcess): void {
  const took = requestLines(gateway).map((line) => line.duration_ms);
  assert.ok(took.length > 0);
  for (const ms of took) assert.ok(ms >= 0 && ms < 60_000, `${ms} ms`);
}

function requestLines(gateway: GatewayProcess): { readonly time: string | number; readonly duration_ms: number }[] {
  const lines = gateway.output().split("\n");
  return lines.filter((line) => line.includes('"msg":"request"')).map((line) => JSON.parse(line));
}

async function deployment(
  store: "embedded" | "redis",
  run: (deployment: Deployment, gateway: GatewayProcess, clock: MachineClock) => Promise<void>,
): Promise<void> {
  const clock = machineClock();
  try {
    const made = await startDeployment({ store, clocks: [clock, clock] });
    try {
      const [gateway] = made.gateways;
      assert.ok(gateway);
      await run(made, gateway, clock);
    } finally {
      await made.close();
    }
  } finally {
    clock.close();
  }
}

for (const store of ["embedded", "redis"] as const) {
  test(`${store}: a gateway whose clock jumps charges each request once, running streams included`, async () => {
    await deployment(store, async ({ simulator, open }, gateway, clock) => {
      const { key, name } = await openAccount(gateway, { funds: FUNDS });
      let charges = 0;
      for (const offset of JUMPS) {
        simulator.hold();
        const before = simulator.count;
        const running = ask(gateway, key, chat({ stream: true }));
        await simulator.waitFor(before + 1);
        clock.setOffset(offset);
        simulator.release();
        assert.equal((await running).status, 200);
        charges += 1 + (await askBoth(gateway, key));
      }
      await assertBooks(gateway, name, charges);
      assertLatencies(gateway);
      const times = requestLines(gateway).map(({ time }) => new Date(time).getTime());
      assert.ok(Math.max(...times) - Math.min(...times) > 1.9 * HOUR_S * 1_000, "the clock jumped");
      // With the embedded store the next process takes over a journal that was written at all of these times.
      clock.setOffset(-HOUR_S);
      await gateway.stop("SIGKILL");
      const next = await open();
      charges += await askBoth(next, key);
      await assertBooks(next, name, charges);
      clock.setOffset(HOUR_S);
      charges += await askBoth(next, key);
      await assertBooks(next, name, charges);
    });
  });
}

test("cards and rate limits follow the store's clock, whatever the gateway's clock says", async () => {
  const clock = machineClock();
  const made = await startDeployment({ store: "redis", faketime: true, clocks: [clock] });
  try {
    const [gateway] = made.gateways;
    assert.ok(gateway);
    const { name, key } = await openAccount(gateway, { funds: FUNDS, group: "sixty-a-minute" });
    for (let i = 0; i < 60; i++) assert.equal((await ask(gateway, key, chat())).status, 200);
    const card = await newKey(gateway, name, "cards");
    const { items } = await admin<{ items: { code: string }[] }>(gateway, "POST", "/codes", { card: "day", count: 1 });
    await admin(gateway, "POST", `/accounts/${name}/redemptions`, { code: items[0]?.code });
    for (const days of [0, 3, -3, 400, 0]) {
      clock.setOffset(days * 24 * HOUR_S);
      const limited = await ask(gateway, key, chat());
      assert.deepEqual([limited.status, limited.cause], [429, "requests"], `${days} days`);
      assert.ok(Number(limited.headers["retry-after"]) <= 60);
      assert.equal((await ask(gateway, card.key, chat())).status, 200, `${days} days`);
    }
    const { held } = await untilNothingHeld(gateway, name);
    assert.equal(held, 0n);
  } finally {
    await made.close();
    clock.close();
  }
});

test("redis: a store whose clock jumps creates no money, and charges each request once", async () => {
  const made = await startDeployment({ store: "redis", faketime: true });
  try {
    const [gateway] = made.gateways;
    const { redis, simulator } = made;
    assert.ok(gateway && redis);
    const { key, name } = await openAccount(gateway, { funds: FUNDS });
    const limited = await openAccount(gateway, { funds: FUNDS, group: "sixty-a-minute" });
    const startMs = Date.UTC(2026, 0, 1);
    for (let i = 0; i < 60; i++) assert.equal((await ask(gateway, limited.key, chat())).status, 200);
    let charges = 0;
    // First to a time before the bucket's beginning: it does not refill then.
    for (const offset of [0, -HOUR_S, -5, -10, -15, -20, 0]) {
      simulator.hold();
      const before = simulator.count;
      const running = ask(gateway, key, chat({ stream: true }));
      await simulator.waitFor(before + 1);
      redis.setTime(startMs + offset * 1_000);
      simulator.release();
      assert.equal((await running).status, 200);
      charges += 1 + (await askBoth(gateway, key));
      assert.equal((await ask(gateway, limited.key, chat())).cause, "requests", `${offset} s`);
    }
    await assertBooks(gateway, name, charges);
    // An hour ahead the bucket is full, and no more.
    redis.setTime(startMs + HOUR_S * 1_000);
    let admitted = 0;
    while ((await ask(gateway, limited.key, chat())).status === 200) admitted += 1;
    assert.equal(admitted, 60);
    charges += await askBoth(gateway, key);
    await assertBooks(gateway, name, charges);
    assertLatencies(gateway);
    assert.equal((await fundsOf(gateway, limited.name)).held, 0n);
  } finally {
    await made.close();
  }
});
