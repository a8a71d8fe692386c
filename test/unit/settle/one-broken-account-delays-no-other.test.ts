/**
 * An account that verification cannot look up, or that is missing, is set aside: all others are verified, a change of servers
 * completes, and after ten minutes its charges are dead letters, one each (docs/failure-model.md invariant 33).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type DeadLetter, openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { type PlacedCharge, SetAside } from "../../../src/settle/journal/set-aside.ts";
import { createVerifier } from "../../../src/settle/journal/verify.ts";
import type { AdminRecord } from "../../../src/settle/journal.ts";
import { Absences } from "../../../src/settle/recovery/absences.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, type Opened, openOn } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const MINUTE_MS = 60_000;
const BROKEN = askOf(3).tag;
/** Numbers of charges; every third is to the account that will be broken. */
const [OF_BROKEN, OF_OTHERS] = [
  [3, 6, 9],
  [1, 2, 4, 5, 7, 8],
];

async function bench(disk = new SimDisk(), clock = new ManualClock(), store = new ForgetfulStore()) {
  const opened = await openOn(disk, clock);
  const absences = new Absences(clock);
  const letters: DeadLetter[] = [];
  const reasons: string[] = [];
  const restored: string[] = [];
  const errors: unknown[] = [];
  const written: string[] = [];
  const server = { now: "one" };
  /** Ids of writes that the store cannot take now. */
  const stuck = new Set<string>();
  const verifier = createVerifier({
    log: opened.log,
    store,
    clock,
    absences,
    deadLetters: await openDeadLetters(disk, clock, (letter) => void letters.push(letter)),
    storeIdentity: async () => server.now,
    async applyAdmin({ kind, id }: AdminRecord) {
      if (stuck.has(id)) absences.doubt(`${kind} ${id}`, "broken");
      absences.forget(`${kind} ${id}`);
      written.push(id);
    },
    onRestored: (ask) => void restored.push(ask.requestId),
    onIdentity: () => {},
    onAside: ({ message }) => void reasons.push(message),
    onError: (error) => void errors.push(error),
  });
  return { disk, clock, store, opened, verifier, letters, reasons, restored, errors, written, server, stuck };
}

/** Makes nine charges to three accounts, all acknowledged. */
async function charge({ opened, store, clock }: { opened: Opened; store: ForgetfulStore; clock: ManualClock }) {
  for (const number of [...OF_BROKEN, ...OF_OTHERS].toSorted()) {
    const final = opened.journal.final(askOf(number));
    await clock.advance(2);
    await final;
    await store.settle(askOf(number));
    opened.journal.ack(idOf(number), "settled");
  }
}

/** Runs rounds of verification over this time. */
async function rounds({ verifier, clock }: Pick<Awaited<ReturnType<typeof bench>>, "verifier" | "clock">, ms: number) {
  for (let passedMs = 0; passedMs < ms; passedMs += 30_000) {
    await clock.advance(30_000);
    await verifier.tick();
  }
}

test("all other accounts are verified while one is broken, and that one when it works again", async () => {
  const scene = await bench();
  const { store, verifier, restored, letters, errors, reasons, opened } = scene;
  await charge(scene);
  store.broken.add(BROKEN);
  for (const number of [3, 5, 6]) store.settled.delete(idOf(number));
  await rounds(scene, 30_000);
  assert.deepEqual(restored, [idOf(5)]);
  assert.equal(verifier.waiting(), OF_BROKEN.length);
  assert.match(reasons[0] ?? "", /WRONGTYPE/);
  store.broken.clear();
  await rounds(scene, MINUTE_MS);
  assert.deepEqual(restored.toSorted(), [3, 5, 6].map(idOf));
  assert.deepEqual([verifier.waiting(), letters, errors], [0, [], []]);
  await opened.journal.close();
});

test("an account that stays broken is given up after ten minutes: one dead letter per charge, and no further ones after a restart", async () => {
  const scene = await bench();
  await charge(scene);
  scene.store.broken.add(BROKEN);
  await rounds(scene, 9 * MINUTE_MS);
  assert.deepEqual([scene.letters.length, scene.verifier.waiting()], [0, OF_BROKEN.length]);
  await rounds(scene, 20 * MINUTE_MS);
  const told = scene.letters.map(({ reason, detail, ask }) => [reason, detail, ask.requestId]);
  assert.deepEqual(told.toSorted(), OF_BROKEN.map((number) => ["refused", "WRONGTYPE", idOf(number)]).toSorted());
  assert.equal(scene.verifier.waiting(), 0);
  await scene.opened.journal.close();
  const second = await bench(scene.disk.afterKill(), scene.clock, scene.store);
  await rounds(second, 30 * MINUTE_MS);
  assert.deepEqual([second.letters, second.errors], [[], []]);
  await second.opened.journal.close();
});

test("a missing account is given up after ten minutes with one dead letter per charge", async () => {
  const scene = await bench();
  await charge(scene);
  scene.store.missing.add(BROKEN);
  for (const number of [...OF_BROKEN, 5]) scene.store.settled.delete(idOf(number));
  await rounds(scene, MINUTE_MS);
  assert.deepEqual([scene.restored, scene.letters], [[idOf(5)], []]);
  await rounds(scene, 20 * MINUTE_MS);
  const told = scene.letters.map(({ reason, ask }) => [reason, ask.requestId]);
  assert.deepEqual(told.toSorted(), OF_BROKEN.map((number) => ["unknown_account", idOf(number)]).toSorted());
  await scene.opened.journal.close();
});

test("a process that takes over retries what was set aside", async () => {
  const first = await bench();
  await charge(first);
  first.store.broken.add(BROKEN);
  for (const number of OF_BROKEN) first.store.settled.delete(idOf(number));
  // Both passes are complete for all others.
  await rounds(first, 10 * MINUTE_MS);
  await first.opened.journal.close();
  first.store.broken.clear();
  const second = await bench(first.disk.afterKill(), first.clock, first.store);
  await rounds(second, MINUTE_MS);
  assert.deepEqual(second.restored.toSorted(), OF_BROKEN.map(idOf).toSorted());
  await second.opened.journal.close();
});

test("a change of servers completes without the broken account, whose charges are restored later", async () => {
  const scene = await bench();
  const { store, server, verifier, restored, errors, written, stuck, opened, clock } = scene;
  await verifier.tick();
  await charge(scene);
  for (const id of ["pay-1", "pay-2"]) {
    const write = opened.journal.adminWrite({ kind: "credit", id, payload: {} });
    await clock.advance(2);
    await write;
  }
  for (const number of [3, 5, 6, 8]) store.settled.delete(idOf(number));
  store.broken.add(BROKEN);
  stuck.add("pay-1");
  server.now = "two";
  assert.equal(await verifier.freshRound(), true);
  assert.deepEqual(restored.toSorted(), [5, 8].map(idOf));
  assert.ok(written.includes("pay-2"));
  assert.equal(verifier.waiting(), OF_BROKEN.length + 1);
  store.broken.clear();
  stuck.clear();
  await rounds(scene, 30_000);
  assert.deepEqual(restored.toSorted(), [3, 5, 6, 8].map(idOf));
  assert.ok(written.includes("pay-1"));
  assert.deepEqual([verifier.waiting(), errors], [0, []]);
  await opened.journal.close();
});

test("a payment that was set aside and then taken gets the full ten minutes when it is set aside again", async () => {
  const scene = await bench();
  const { stuck, verifier, server, written, opened, clock } = scene;
  await verifier.tick();
  const write = opened.journal.adminWrite({ kind: "credit", id: "pay-1", payload: {} });
  await clock.advance(2);
  await write;
  for (const now of ["two", "three"]) {
    stuck.add("pay-1");
    server.now = now;
    await rounds(scene, 9 * MINUTE_MS);
    assert.equal(verifier.waiting(), 1, now);
    written.length = 0;
    stuck.clear();
    await rounds(scene, MINUTE_MS);
    assert.ok(written.includes("pay-1"), now);
    await clock.advance(6 * 60 * MINUTE_MS);
  }
  await opened.journal.close();
});

test("a charge that is set aside keeps its segment of the journal until it is done", async () => {
  const scene = await bench();
  await charge(scene);
  scene.store.broken.add(BROKEN);
  const { journal } = scene.opened;
  for (let number = 10; number < 120; number++) {
    if (number % 3 === 0) continue;
    const final = journal.final(askOf(number));
    await scene.clock.advance(2);
    await final;
    await scene.store.settle(askOf(number));
    journal.ack(idOf(number), "settled");
  }
  const [first] = scene.disk.segments();
  await rounds(scene, 9 * MINUTE_MS);
  await scene.clock.advance(25 * 60 * MINUTE_MS);
  await scene.verifier.tick();
  await scene.verifier.tick();
  assert.equal(scene.disk.segments()[0], first);
  scene.store.broken.clear();
  await rounds(scene, 15 * MINUTE_MS);
  assert.notEqual(scene.disk.segments()[0], first);
  await journal.close();
});

test("retries back off while none succeeds, and only one charge of an account is tried first", async () => {
  const clock = new ManualClock();
  const aside = new SetAside(clock);
  for (const number of OF_BROKEN) {
    const { requestId, tag, amount } = askOf(number);
    aside.addCharge({ charge: { requestId, tag, amount, record: "" }, segment: number });
  }
  const tried: number[] = [];
  let works = false;
  const tries = {
    write: async () => true,
    async charges(placed: readonly { segment: number; charge: { requestId: string } }[]) {
      tried.push(...placed.map(({ segment }) => segment));
      return works ? [] : (placed as never);
    },
  };
  const seconds = async (count: number) => {
    for (let second = 0; second < count; second++) {
      await aside.retry(tries);
      await clock.advance(1_000);
    }
    return tried.splice(0);
  };
  assert.deepEqual(await seconds(15), [3, 3, 3, 3]);
  assert.equal(aside.oldestSegment, 3);
  works = true;
  assert.deepEqual(await seconds(20), [3, 6, 9]);
  assert.deepEqual([aside.size, aside.oldestSegment], [0, undefined]);
});

test("setting aside more than the maximum throws an error", () => {
  const aside = new SetAside(new ManualClock(), 2);
  const { requestId, tag, amount } = askOf(3);
  const placed = { charge: { requestId, tag, amount, record: "" }, segment: 1 };
  const record: AdminRecord = { kind: "credit", id: "pay", payload: {} };
  for (let time = 0; time < 3; time++) {
    aside.addCharge(placed);
    aside.addWrite({ record, segment: 1 });
  }
  assert.equal(aside.size, 2);
  const more = { ...placed, charge: { ...placed.charge, requestId: idOf(6) } };
  assert.throws(() => aside.addCharge(more), StoreError);
  assert.throws(() => aside.addWrite({ record: { ...record, id: "other" }, segment: 1 }), StoreError);
});

const WRITE: AdminRecord = { kind: "credit", id: "pay", payload: {} };
const writeOf = (id: string, segment: number) => ({ record: { ...WRITE, id }, segment });
function chargeOf(number: number, segment: number) {
  const { requestId, tag, amount } = askOf(number);
  return { charge: { requestId, tag, amount, record: "" }, segment };
}

test("writes are retried in their order and before the charges that need them, until each is done", async () => {
  const clock = new ManualClock();
  const aside = new SetAside(clock);
  aside.addCharge(chargeOf(1, 9));
  for (const id of ["account", "topup", "key"]) aside.addWrite(writeOf(id, 7));
  assert.equal(aside.oldestSegment, 7, "the segment is kept for a write too");
  const tried: string[] = [];
  const stuck = new Set(["topup"]);
  const tries = {
    async write({ id }: AdminRecord) {
      tried.push(id);
      return !stuck.has(id);
    },
    async charges(placed: readonly { segment: number }[]) {
      if (placed.length > 0) tried.push("charge");
      return [];
    },
  };
  await aside.retry(tries);
  assert.deepEqual(tried.splice(0), ["account", "topup", "key", "charge"]);
  assert.equal(aside.size, 1);
  stuck.clear();
  await clock.advance(1_000);
  await aside.retry(tries);
  await clock.advance(10_000);
  await aside.retry(tries);
  assert.deepEqual([tried, aside.size, aside.oldestSegment], [["topup"], 0, undefined]);
});

test("after a retry that succeeds the next follows a second later, however long the pauses were", async () => {
  const clock = new ManualClock();
  const aside = new SetAside(clock);
  for (const number of [1, 2]) aside.addCharge(chargeOf(number, 1));
  let taken = 0;
  let tries = 0;
  const charges = async (placed: readonly PlacedCharge[]) => {
    if (placed.length > 0) tries++;
    return placed.slice(taken);
  };
  const seconds = async (count: number) => {
    for (let second = 0; second < count; second++) {
      await aside.retry({ write: async () => true, charges });
      await clock.advance(1_000);
    }
    const made = tries;
    tries = 0;
    return made;
  };
  // At 0, 2, 6, 14 and 24 seconds: the pause starts at one second, doubles each time, and is ten seconds at most.
  assert.equal(await seconds(25), 5);
  taken = 1;
  await seconds(9);
  assert.equal(await seconds(1), 1);
  assert.equal(aside.size, 1);
  taken = 0;
  assert.equal(await seconds(1), 1, "the write is retried a second later");
});

test("as many records can be set aside as the journal may have without an answer", () => {
  const aside = new SetAside(new ManualClock());
  for (let number = 0; number < 100_000; number++) aside.addCharge(chargeOf(number, 1));
  assert.throws(() => aside.addCharge(chargeOf(100_000, 1)), StoreError);
});
