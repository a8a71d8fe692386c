/**
 * A store that belongs to the process alone keeps what it acknowledged for as long as the process lives. So verification looks
 * for the records of earlier processes only and leaves recent ones to the next process
 * (docs/decisions/a-store-of-its-own-is-not-asked-again.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { createJournal } from "../../../src/settle/journal/open.ts";
import { createVerifier } from "../../../src/settle/journal/verify.ts";
import { openCharging } from "../../../src/settle/recovery/charging.ts";
import type { Store } from "../../../src/store/contract.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import { memoryDatabase } from "../../../src/store/embedded/database/open.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import { composeStore } from "../../../src/store/middleware/compose.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, openOn, SMALL_BYTES_MAX, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const HOUR_MS = 3_600_000;

/** A process with an embedded store, and the ids that its verification looked for in the store. */
async function processOn(disk: SimDisk, clock: ManualClock, store: ForgetfulStore) {
  const { journal, log, leftovers } = await openOn(disk, clock);
  store.looked.length = 0;
  const admin: string[] = [];
  const restored: string[] = [];
  const identity = { now: "one" };
  const verifier = createVerifier({
    log,
    store,
    clock,
    isEmbedded: true,
    deadLetters: await openDeadLetters(disk, clock, () => {}),
    storeIdentity: async () => identity.now,
    applyAdmin: async ({ id }) => void admin.push(id),
    onRestored: ({ requestId }) => void restored.push(requestId),
    onIdentity: () => {},
    onError: assert.ifError,
  });
  const final = async (number: number) => {
    const written = journal.final(askOf(number));
    await clock.advance(2);
    await written;
  };
  const charge = async (number: number) => {
    journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
    await final(number);
    await store.settle(askOf(number));
    journal.ack(idOf(number), "settled");
  };
  const charges = async (from: number, to: number) => {
    for (let number = from; number <= to; number++) await charge(number);
  };
  const tickAfter = async (ms: number) => {
    await clock.advance(ms);
    await verifier.tick();
  };
  const looked = () => [...new Set(store.looked)].sort();
  return { disk, log, journal, leftovers, identity, admin, restored, final, charge, charges, tickAfter, looked };
}

test("what the process itself has written is not looked for, neither a charge nor an administrative write", async () => {
  const { journal, charges, admin, tickAfter, looked } = await processOn(
    new SimDisk(),
    new ManualClock(),
    new ForgetfulStore(),
  );
  await charges(1, 40);
  const written = journal.adminWrite({ kind: "credit", id: "pay-1", payload: { amount: "5" } });
  await tickAfter(2);
  await written;
  for (const ms of [30_000, 30_000, 600_000, HOUR_MS]) await tickAfter(ms);
  assert.deepEqual([looked(), admin], [[], []]);
  await journal.close();
});

test("charges of an earlier process are looked for twice, as with any store", async () => {
  const [clock, store] = [new ManualClock(), new ForgetfulStore()];
  const first = await processOn(new SimDisk(), clock, store);
  await first.charges(1, 5);
  await first.journal.close();
  const second = await processOn(first.disk.afterKill(), clock, store);
  store.settled.delete(idOf(3));
  await second.charges(6, 9);
  await second.tickAfter(30_000);
  assert.deepEqual(second.looked(), [1, 2, 3, 4, 5].map(idOf));
  assert.deepEqual(second.restored, [idOf(3)]);
  store.looked.length = 0;
  await second.tickAfter(600_000);
  assert.deepEqual(second.looked(), [1, 2, 3, 4, 5].map(idOf));
  store.looked.length = 0;
  await second.tickAfter(HOUR_MS);
  assert.deepEqual(second.looked(), []);
  await second.journal.close();
});

test("the next process looks for everything younger than a pass, and not for the older part of a long run", async () => {
  const [clock, store] = [new ManualClock(), new ForgetfulStore()];
  const first = await processOn(new SimDisk(), clock, store);
  await first.charges(1, 60);
  await first.tickAfter(HOUR_MS);
  await first.charges(61, 80);
  await first.tickAfter(300_000);
  await first.charges(81, 100);
  await first.tickAfter(31_000);
  await first.journal.close();
  const second = await processOn(first.disk.afterKill(), clock, store);
  await second.tickAfter(600_000);
  const looked = second.looked();
  for (let number = 61; number <= 100; number++) assert.ok(looked.includes(idOf(number)), `${number}`);
  assert.ok(!looked.includes(idOf(1)), "the oldest segments are older than both passes");
  await second.journal.close();
});

test("a charge whose ACK comes several segments later is looked for by the next process", async () => {
  const [clock, store] = [new ManualClock(), new ForgetfulStore()];
  const first = await processOn(new SimDisk(), clock, store);
  await first.charges(1, 60);
  await first.tickAfter(HOUR_MS);
  await first.final(99);
  const segment = () => first.log.segments().at(-1)?.number;
  const before = segment();
  for (let number = 61; segment() === before; number++) await first.charge(number);
  await store.settle(askOf(99));
  first.journal.ack(idOf(99), "settled");
  await first.tickAfter(31_000);
  await first.journal.close();
  const second = await processOn(first.disk.afterKill(), clock, store);
  await second.tickAfter(31_000);
  assert.ok(second.looked().includes(idOf(99)));
  await second.journal.close();
});

test("segments are removed after a day; charges left open by an earlier process keep theirs until they are settled", async () => {
  const [clock, store] = [new ManualClock(), new ForgetfulStore()];
  const first = await processOn(new SimDisk(), clock, store);
  await first.charges(1, 40);
  await first.final(99);
  await first.journal.close();
  const second = await processOn(first.disk.afterKill(), clock, store);
  assert.equal(second.leftovers.length, 1);
  await second.charges(41, 80);
  await second.tickAfter(601_000);
  await second.tickAfter(25 * HOUR_MS);
  assert.ok(second.disk.segments().length > 4, "kept, since it has no ACK");
  second.journal.ack(idOf(99), "settled");
  await second.tickAfter(1_000);
  await second.tickAfter(1_000);
  // The ACK makes the last segment recent; the one before it is kept for the next process.
  await second.tickAfter(25 * HOUR_MS);
  await second.tickAfter(1_000);
  assert.ok(second.disk.segments().length <= 3, `${second.disk.segments()}`);
  await second.journal.close();
});

test("a charge left open by an earlier process is kept until its ACK is verified, however old it is", async () => {
  const [clock, store] = [new ManualClock(), new ForgetfulStore()];
  const first = await processOn(new SimDisk(), clock, store);
  await first.final(99);
  await first.journal.close();
  await clock.advance(30 * HOUR_MS);
  const second = await processOn(first.disk.afterKill(), clock, store);
  await store.settle(askOf(99));
  second.journal.ack(idOf(99), "settled");
  await second.charges(1, 5);
  for (let i = 0; i < 3; i++) await second.tickAfter(1_000);
  await second.journal.close();
  // The power fails again, and what was committed last is lost.
  store.settled.delete(idOf(99));
  const third = await processOn(second.disk.afterKill(), clock, store);
  third.identity.now = "another run of the machine";
  await third.tickAfter(0);
  assert.ok(third.restored.includes(idOf(99)));
  await third.journal.close();
});

test("after a loss of power everything that may be lost is sent again, whichever process wrote it", async () => {
  const [clock, store] = [new ManualClock(), new ForgetfulStore()];
  const first = await processOn(new SimDisk(), clock, store);
  await first.tickAfter(0);
  await first.charges(1, 60);
  await first.tickAfter(HOUR_MS);
  await first.charges(61, 70);
  await first.journal.close();
  for (const number of [5, 60, 70]) store.settled.delete(idOf(number));
  const second = await processOn(first.disk.afterKill(), clock, store);
  second.identity.now = "another run of the machine";
  await second.tickAfter(0);
  assert.deepEqual(second.restored.sort(), [5, 60, 70].map(idOf));
  await second.journal.close();
});

/** Whether a charge of a gateway with such a store is looked for half a minute later. */
async function isLookedFor(storeKind: Parameters<typeof openCharging>[0]["storeKind"]): Promise<boolean> {
  const [disk, clock, log, metrics] = [
    new SimDisk(),
    new ManualClock(),
    createLog({ level: "silent" }),
    createMetrics(),
  ];
  const books = new ForgetfulStore();
  const embedded = embeddedOver(new Context(memoryDatabase(), () => clock.wallMs()));
  const store: Store = overlay(embedded, {
    settle: (ask) => books.settle(ask),
    settledAmounts: (tag, ids) => books.settledAmounts(tag, ids),
  });
  const composed = composeStore(store, { clock, random: () => 0.5, metrics, log, remote: false });
  const charging = await openCharging({
    settings: { dir: "journal", fsync: "group", bytesMax: SMALL_BYTES_MAX },
    store: composed,
    storeKind,
    clock,
    metrics,
    log,
    machine: {
      open: async (settings, { alarm }) => ({ ...(await createJournal({ ...settings, disk, clock, alarm })), disk }),
      epochFile: () => ({ load: async () => new Map(), save: async () => {} }),
      random: (bytes) => Buffer.alloc(bytes, 7),
      jitter: () => 0.5,
    },
  });
  const charged = charging.settler.settle(askOf(1));
  await clock.advance(10);
  await charged;
  for (let second = 0; second < 32; second++) await clock.advance(1_000);
  assert.ok(books.settled.has(idOf(1)));
  await charging.close();
  await embedded.close();
  return books.looked.includes(idOf(1));
}

test("only the embedded store belongs to one process", async () => {
  const kinds = ["embedded", "redis", "redis-sentinel", "redis-cluster"] as const;
  const looked: boolean[] = [];
  for (const kind of kinds) looked.push(await isLookedFor(kind));
  assert.deepEqual(looked, [false, true, true, true]);
});
