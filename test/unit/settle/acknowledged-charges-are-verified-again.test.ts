/** docs/failure-model.md invariant 33: acknowledged charges are verified after 30 s and after 10 min, and kept for a day. */
import assert from "node:assert/strict";
import test from "node:test";
import { type DeadLetter, openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { createVerifier } from "../../../src/settle/journal/verify.ts";
import type { AdminRecord } from "../../../src/settle/journal.ts";
import { SETTLED_IDS_MAX } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import {
  askOf,
  ForgetfulStore,
  idOf,
  ManualClock,
  type Opened,
  openOn,
  SMALL_BYTES_MAX,
  turns,
  voidOf,
} from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const HOUR_MS = 3_600_000;

async function bench(
  disk = new SimDisk(),
  clock = new ManualClock(),
  store = new ForgetfulStore(),
  shardOf?: (tag: string) => string,
  bytesMax = SMALL_BYTES_MAX,
) {
  const opened = await openOn(disk, clock, { bytesMax });
  const letters: DeadLetter[] = [];
  const restored: string[] = [];
  const admin: AdminRecord[] = [];
  const errors: unknown[] = [];
  const identity: { now: string | undefined } = { now: "one" };
  const verifier = createVerifier({
    log: opened.log,
    store,
    clock,
    ...(shardOf ? { shardOf } : {}),
    deadLetters: await openDeadLetters(disk, clock, (letter) => void letters.push(letter)),
    storeIdentity: async () => identity.now,
    applyAdmin: async (record) => void admin.push(record),
    onRestored: (ask) => void restored.push(ask.requestId),
    onIdentity: () => {},
    onError: (error) => void errors.push(error),
  });
  return { disk, clock, store, opened, verifier, letters, restored, admin, errors, identity };
}

/** One request from its OPEN to its ACK. */
async function charge(opened: Opened, store: ForgetfulStore, clock: ManualClock, number: number): Promise<void> {
  opened.journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
  const final = opened.journal.final(askOf(number));
  await clock.advance(2);
  await final;
  await store.settle(askOf(number));
  opened.journal.ack(idOf(number), "settled");
}

test("a charge is verified twice, after 30 seconds and after 10 minutes, and never again", async () => {
  const { clock, store, opened, verifier, restored } = await bench();
  for (let number = 1; number <= 20; number++) await charge(opened, store, clock, number);
  const sent = () => store.looked.length;
  await verifier.tick();
  assert.equal(sent(), 0);
  await clock.advance(30_000);
  await verifier.tick();
  assert.equal(sent(), 20);
  await clock.advance(300_000);
  await verifier.tick();
  assert.equal(sent(), 20);
  await clock.advance(300_000);
  await verifier.tick();
  assert.equal(sent(), 40);
  await clock.advance(HOUR_MS);
  await verifier.tick();
  assert.equal(sent(), 40);
  assert.deepEqual(restored, []);
  await opened.journal.close();
});

test("a charge that the store has lost meanwhile is restored and counted", async () => {
  const { clock, store, opened, verifier, restored } = await bench();
  for (let number = 1; number <= 5; number++) await charge(opened, store, clock, number);
  store.settled.delete(idOf(4));
  await clock.advance(30_000);
  await verifier.tick();
  assert.deepEqual(restored, [idOf(4)]);
  assert.equal(store.settled.get(idOf(4))?.amount, askOf(4).amount);
  await opened.journal.close();
});

test("a charge is sent again only if the store does not prove to have it unchanged", async () => {
  const { clock, store, opened, verifier, letters, restored } = await bench();
  for (let number = 1; number <= 5; number++) await charge(opened, store, clock, number);
  store.asks.length = 0;
  store.settled.delete(idOf(2));
  store.settled.set(idOf(4), { ...askOf(4), amount: nanoUsd(askOf(4).amount + 1n) });
  await clock.advance(30_000);
  await verifier.tick();
  assert.deepEqual(store.looked.toSorted(), [1, 2, 3, 4, 5].map(idOf));
  assert.deepEqual(store.asks.toSorted(), [idOf(2), idOf(4)]);
  assert.deepEqual(restored, [idOf(2)]);
  assert.deepEqual(
    letters.map(({ reason, ask }) => [reason, ask.requestId]),
    [["mismatch", idOf(4)]],
  );
  await opened.journal.close();
});

test("many charges are looked up in batches, and missing ones are sent again with bounded concurrency", async () => {
  const store = new ForgetfulStore();
  const { clock, opened, verifier, restored } = await bench(undefined, undefined, store, undefined, 16 * 1024 * 1024);
  const count = 6 * SETTLED_IDS_MAX;
  // All charges are to the same account.
  for (let i = 1; i <= count; i++) await charge(opened, store, clock, 3 * i);
  store.settled.clear();
  let [now, most] = [0, 0];
  const settle = store.settle.bind(store);
  store.settle = async (ask) => {
    most = Math.max(most, ++now);
    await turns(1);
    return settle(ask).finally(() => now--);
  };
  await clock.advance(30_000);
  await verifier.tick();
  assert.equal(store.looked.length, count);
  assert.equal(restored.length, count);
  assert.equal(most, 32);
  await opened.journal.close();
});

test("an unreachable store delays the pass and loses nothing", async () => {
  const { clock, store, opened, verifier, restored, errors } = await bench();
  for (let number = 1; number <= 5; number++) await charge(opened, store, clock, number);
  store.settled.clear();
  store.away = true;
  await clock.advance(30_000);
  await verifier.tick();
  assert.equal(errors.length, 1);
  store.away = false;
  await verifier.tick();
  assert.deepEqual(restored.sort(), [1, 2, 3, 4, 5].map(idOf));
  await opened.journal.close();
});

test("a restart continues the passes where they were", async () => {
  const first = await bench();
  const { disk, clock, store } = first;
  for (let number = 1; number <= 5; number++) await charge(first.opened, store, clock, number);
  await clock.advance(30_000);
  await first.verifier.tick();
  await charge(first.opened, store, clock, 6);
  await first.opened.journal.close();
  store.looked.length = 0;
  const second = await bench(disk.afterKill(), clock, store);
  assert.equal(second.opened.leftovers.length, 0);
  await clock.advance(30_000);
  await second.verifier.tick();
  assert.deepEqual(store.looked, [idOf(6)]);
  await clock.advance(600_000);
  await second.verifier.tick();
  assert.deepEqual(store.looked.slice(1).sort(), [1, 2, 3, 4, 5, 6].map(idOf));
  await second.opened.journal.close();
});

test("a segment is removed once it is verified twice and a day old; a charge without an ACK pins it", async () => {
  const { disk, clock, store, opened, verifier } = await bench();
  const pinning = opened.journal.final(askOf(99));
  await clock.advance(2);
  await pinning;
  for (let number = 1; number <= 40; number++) await charge(opened, store, clock, number);
  const before = disk.segments().length;
  assert.ok(before >= 4);
  await clock.advance(30_000);
  await verifier.tick();
  await clock.advance(600_000);
  await verifier.tick();
  await clock.advance(25 * HOUR_MS);
  await verifier.tick();
  assert.ok(disk.segments().length >= before, "the oldest segment is pinned, and all later ones with it");
  opened.journal.ack(idOf(99), "settled");
  await verifier.tick();
  assert.equal(disk.segments().length, before, "its ACK is not verified yet");
  await clock.advance(600_000);
  await verifier.tick();
  await verifier.tick();
  assert.equal(disk.segments().length, 2, "the current one and the spare");
  await opened.journal.close();
});

test("segments that are a day old but not verified, since the store is unreachable, are kept", async () => {
  const { disk, clock, store, opened, verifier } = await bench();
  for (let number = 1; number <= 20; number++) await charge(opened, store, clock, number);
  const before = disk.segments().length;
  store.away = true;
  await clock.advance(30 * HOUR_MS);
  await verifier.tick();
  assert.ok(disk.segments().length >= before);
  await opened.journal.close();
});

test("after a change of servers charges are sent newest first, back to one that the new server has, and no further", async () => {
  const { clock, store, opened, verifier, restored, identity, admin } = await bench();
  await verifier.tick();
  for (let number = 1; number <= 40; number++) {
    await charge(opened, store, clock, number);
    await clock.advance(1_000);
  }
  const written = opened.journal.adminWrite({ kind: "credit", id: "pay-1", payload: { amount: "5" } });
  await clock.advance(2);
  await written;
  await verifier.tick();
  // A failover that loses its last three seconds.
  for (const number of [38, 39, 40]) store.settled.delete(idOf(number));
  store.asks.length = 0;
  identity.now = "two";
  await verifier.tick();
  assert.deepEqual(restored.sort(), [38, 39, 40].map(idOf));
  const oldest = Math.min(...store.asks.map((id) => Number.parseInt(id, 16)));
  // Thirty-two are in flight at once, so that the walk overshoots by one batch at most.
  assert.ok(oldest > 0 && store.asks[0] === idOf(40), `from 40 back to ${oldest}`);
  assert.ok(!store.asks.includes(idOf(1)));
  assert.equal(admin[0]?.id, "pay-1");
  store.asks.length = 0;
  identity.now = "two";
  await verifier.tick();
  assert.deepEqual(new Set(store.asks).has(idOf(40)), false, "charges are verified once for each change of the server");
  await opened.journal.close();
});

test("a server that takes over while another one is given its missing charges is given all that is kept", async () => {
  const { clock, store, opened, verifier, errors, identity } = await bench();
  for (let number = 1; number <= 40; number++) {
    await charge(opened, store, clock, number);
    await clock.advance(1_000);
  }
  await verifier.tick();
  store.settled.delete(idOf(40));
  const settle = store.settle.bind(store);
  store.settle = (ask) => {
    identity.now = "three";
    return settle(ask);
  };
  identity.now = "two";
  await verifier.tick();
  assert.match(String(errors), /the store changed servers again/);
  // It has some of the charges that were sent by then, which proves nothing about earlier ones.
  store.asks.length = 0;
  await verifier.tick();
  assert.ok(store.asks.includes(idOf(1)));
  await opened.journal.close();
});

test("each of several servers has its own history: one that lost nothing does not hide a loss of another", async () => {
  const { clock, store, opened, verifier, restored, identity } = await bench(
    undefined,
    undefined,
    undefined,
    (tag) => tag,
  );
  await verifier.tick();
  for (let number = 1; number <= 60; number++) {
    await charge(opened, store, clock, number);
    await clock.advance(1_000);
  }
  await verifier.tick();
  // One server of three loses half a minute; the other two have everything.
  const lost = Array.from({ length: 60 }, (_, index) => index + 1).filter((number) => number > 30 && number % 3 === 0);
  for (const number of lost) store.settled.delete(idOf(number));
  store.asks.length = 0;
  identity.now = "two";
  await verifier.tick();
  assert.deepEqual(restored.sort(), lost.map(idOf));
  await opened.journal.close();
});

test("a change of servers while no process ran is noticed at the next start", async () => {
  const first = await bench();
  const { disk, clock, store } = first;
  await first.verifier.tick();
  for (let number = 1; number <= 5; number++) await charge(first.opened, store, clock, number);
  await first.opened.journal.close();
  store.settled.delete(idOf(5));
  const second = await bench(disk.afterKill(), clock, store);
  second.identity.now = "two";
  await second.verifier.tick();
  assert.deepEqual(second.restored, [idOf(5)]);
  await second.opened.journal.close();
});

test("when a change of servers is noticed late, charges that the new server took before do not hide those that the old one lost", async () => {
  const first = await bench(undefined, undefined, undefined, (tag) => tag);
  const { disk, clock, store } = first;
  await first.verifier.tick();
  // 1 to 3, one of each account, are lost; the rest, more than a batch, is on the new server; then the process dies.
  for (let number = 1; number <= 70; number++) await charge(first.opened, store, clock, number);
  await first.opened.journal.close();
  for (const number of [1, 2, 3]) store.settled.delete(idOf(number));
  await clock.advance(10_000);
  const second = await bench(disk.afterKill(), clock, store, (tag) => tag);
  second.identity.now = "two";
  await second.verifier.tick();
  assert.deepEqual(second.restored.sort(), [1, 2, 3].map(idOf));
  await second.opened.journal.close();
});

test("dead letters are kept in a file that outlives the process, counted, and then released by the journal", async () => {
  const { disk, clock, store, opened, verifier, letters } = await bench();
  await charge(opened, store, clock, 1);
  store.settled.set(idOf(1), askOf(1, 5));
  await clock.advance(30_000);
  await verifier.tick();
  assert.deepEqual(
    letters.map(({ reason, detail }) => [reason, detail]),
    [["mismatch", "recorded 5"]],
  );
  const lines = disk.bytesOf("dead-letters.jsonl").toString().trim().split("\n");
  assert.equal(JSON.parse(lines[0] as string).ask.amount, "101");
  assert.equal((await openDeadLetters(disk.afterKill(), clock, () => {})).count(), 1);
  await turns();
  await opened.journal.close();
});
