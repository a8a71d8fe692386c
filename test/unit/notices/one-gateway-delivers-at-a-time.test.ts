/**
 * Two gateways on one Redis: one delivers, and the other continues where it stops. Also how long a gateway relies on
 * its lease.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { Notices } from "../../../src/notices/notices.ts";
import type { Store } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { Secret } from "../../../src/values/secret.ts";
import { systemClock } from "../../../src/values/time.ts";
import { type Receiver, startReceiver, webhookSecret } from "../../e2e/money/notices/receiver.ts";
import { startRedis } from "../../rig/redis.ts";
import { type Held, heldServer } from "../dispatch/rig.ts";
import { makeAccount } from "../store/asks.ts";
import { PATIENT } from "../store/benches.ts";
import { rest, settingsOf, startRig, until } from "./rig.ts";

async function gateway(t: TestContext, url: string, receiver: Receiver, name: string) {
  const notices = new Notices({
    settings: settingsOf(receiver),
    delivers: true,
    generation: () => 1,
    clock: systemClock,
    metrics: createMetrics(),
    log: createLog({ level: "silent" }),
    random: (bytes) => Buffer.alloc(bytes, name),
    jitter: () => 0.5,
    fetch,
  });
  const store = await openStore({ kind: "redis", url: new Secret(url) }, { ...PATIENT, notices: notices.writer });
  await store.check();
  t.after(async () => {
    await notices.stop();
    await store.close();
  });
  return { notices, store };
}

const addNotice = (store: Store, tag: Parameters<Store["getAccount"]>[0], ref: string) =>
  store.addNotice(tag, { kind: "balance_low", ref, data: {} });

test("one gateway delivers, and the other continues when it stops or is asked to yield", async (t) => {
  const redis = await startRedis();
  const receiver = await startReceiver(webhookSecret("one"));
  t.after(async () => {
    await receiver.close();
    await redis.stop();
  });
  const one = await gateway(t, redis.url, receiver, "1");
  const two = await gateway(t, redis.url, receiver, "2");
  const tag = await makeAccount(one.store, "Two");
  one.notices.start(one.store);
  await addNotice(one.store, tag, "a");
  await receiver.until(() => receiver.log.length === 1);
  two.notices.start(two.store);
  // The delivering gateway finds what the other one has written.
  await addNotice(two.store, tag, "b");
  await receiver.until(() => receiver.log.length === 2);
  assert.deepEqual([one.notices.status()?.isLeader, two.notices.status()?.isLeader], [true, false]);
  await one.notices.stop();
  await addNotice(one.store, tag, "c");
  await receiver.until(() => receiver.log.length === 3);
  assert.equal(two.notices.status()?.isLeader, true);
  const three = await gateway(t, redis.url, receiver, "3");
  three.notices.start(three.store);
  assert.equal(await three.notices.retry(), true);
  assert.equal(three.notices.status()?.isLeader, true);
  await addNotice(three.store, tag, "d");
  await receiver.until(() => receiver.log.some(({ reference }) => reference === "d"));
  assert.deepEqual([...new Set(receiver.log.map(({ reference }) => reference))], ["a", "b", "c", "d"]);
});

test("a gateway that stops releases its lease at once, and only its own", async (t) => {
  for (const isOurs of [true, false]) {
    const askedMs: number[] = [];
    const leaseNotices = async ({ ms }: { readonly ms: number }) => {
      askedMs.push(ms);
      return isOurs;
    };
    const { notices, clock } = await startRig(t, { calls: { leaseNotices } });
    await until(clock, () => askedMs.length > 0 && notices.status()?.isLeader === isOurs);
    await notices.stop();
    assert.deepEqual(askedMs, isOurs ? [6_000, 1] : [6_000]);
  }
});

test("a notice that is accepted while its gateway stops is not delivered again", async (t) => {
  let stopped: Promise<void> | undefined;
  const { clock, notices, store, tag, addNotice } = await startRig(t, {
    async fetch(_, { signal } = {}) {
      stopped = notices.stop();
      await once(signal as AbortSignal, "abort");
      return new Response(null, { status: 204 });
    },
  });
  await addNotice("a");
  while (stopped === undefined) await clock.advance(100);
  await stopped;
  assert.deepEqual((await store.readNotices(tag, 10)).notices, []);
});

test("a lease counts from the moment of the request, however late the store answers", async (t) => {
  const answer = Promise.withResolvers<boolean>();
  const { clock, notices } = await startRig(t, { calls: { leaseNotices: () => answer.promise } });
  await clock.advance(4_000);
  answer.resolve(true);
  await rest(clock);
  assert.equal(notices.status()?.isLeader, true);
  await clock.advance(999);
  assert.equal(notices.status()?.isLeader, true);
  // The store may count from the request on, and would grant the lease to another gateway after 6 seconds.
  await clock.advance(1);
  assert.equal(notices.status()?.isLeader, false);
});

test("a notice in delivery is not sent a second time, even if the lease is lost and regained meanwhile", async (t) => {
  const server = await heldServer(t);
  let isOurs = true;
  const { clock, store, notices, tag, addNotice } = await startRig(t, {
    settings: { url: new Secret(server.base) },
    calls: { leaseNotices: async () => isOurs },
  });
  const come: Held[] = [];
  const note = (held: Held) => {
    come.push(held);
    void server.next().then(note);
  };
  void server.next().then(note);
  await addNotice("a");
  await until(clock, () => come.length === 1);
  for (const now of [false, true]) {
    isOurs = now;
    await clock.advance(2_000);
    await until(clock, () => notices.status()?.isLeader === now);
    await clock.advance(3_000);
    await rest(clock);
  }
  assert.equal(come.length, 1);
  come[0]?.answer();
  for (let left = 1; left > 0; left = (await store.readNotices(tag, 1)).notices.length) await clock.advance(0);
  await rest(clock);
  assert.equal(come.length, 1);
});
