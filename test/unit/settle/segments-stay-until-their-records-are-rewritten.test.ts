/**
 * docs/failure-model.md rows F1 and F2: while records of a failed segment cannot be written again elsewhere, the segments that
 * have them on the disk are kept, however short of room the journal is.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Journal } from "../../../src/settle/journal.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, idOf, ManualClock, type Opened, openOn, turns, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

interface Scene extends Opened {
  readonly disk: SimDisk;
  readonly clock: ManualClock;
}

async function open(disk = new SimDisk()): Promise<Scene> {
  const clock = new ManualClock();
  return { ...(await openOn(disk, clock)), disk, clock };
}

async function charge({ journal, clock }: Scene, number: number): Promise<boolean> {
  journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
  const written = journal.final(askOf(number)).then(
    () => true,
    () => false,
  );
  await turns(3);
  await clock.advance(5);
  return written;
}

/** Makes charges that the store does not take, until this share of the journal is used. */
async function fill(scene: Scene, ratio: number): Promise<number[]> {
  const written: number[] = [];
  while (scene.journal.health().fillRatio < ratio && (await charge(scene, written.length + 1)))
    written.push(written.length + 1);
  return written;
}

async function leftAfterKill(disk: SimDisk): Promise<Set<string>> {
  const { leftovers } = await openOn(disk.afterKill(), new ManualClock());
  return new Set(leftovers.filter(({ final }) => final).map(({ ask }) => ask.requestId));
}

async function demandKept(scene: Scene, written: readonly number[]): Promise<void> {
  await scene.log.clean(Number.POSITIVE_INFINITY);
  const left = await leftAfterKill(scene.disk);
  assert.deepEqual(
    written.filter((number) => !left.has(idOf(number))),
    [],
  );
}

test("a disk that fails for a while loses no record", async () => {
  const scene = await open();
  const { disk, clock } = scene;
  const written = await fill(scene, 0.78);
  assert.ok(written.length > 100);
  disk.fault = { at: disk.calls + 1, times: 6, code: "EIO" };
  assert.equal(await charge(scene, 1_000), false);
  disk.fault = undefined;
  await demandKept(scene, written);
  await clock.advance(1_000);
  await clock.advance(5);
  await demandKept(scene, written);
});

test("records written but not synced before their segment was given up are found at the next start", async () => {
  for (let call = 1; call <= 5; call++) {
    const scene = await open();
    const { disk } = scene;
    assert.equal(await charge(scene, 1), true);
    disk.fault = { at: disk.calls + call, times: 1, code: "EIO" };
    assert.equal(await charge(scene, 2), true, "written to the next segment");
    const { leftovers, alarms } = await openOn(
      disk.afterPowerLoss(() => 0),
      new ManualClock(),
    );
    const written = leftovers.filter(({ final }) => final).map(({ ask }) => ask.requestId);
    assert.deepEqual([written, alarms], [[idOf(1), idOf(2)], []], `call ${call}`);
  }
});

test("a journal that has used up bytes_max is usable again when the store has taken the charges", async () => {
  const scene = await open();
  const { journal, clock, disk } = scene;
  const written = await fill(scene, Number.POSITIVE_INFINITY);
  assert.match(journal.health().reason ?? "", /used up/);
  await demandKept(scene, written);
  await clock.advance(1_000);
  await demandKept(scene, written);
  const [last = 0] = written.splice(-1);
  for (const number of written) journal.ack(idOf(number), "settled");
  // The ACK of the request whose charge went to the store only.
  journal.ack(idOf(last + 1), "settled");
  await scene.log.clean(0);
  await clock.advance(1_000);
  await clock.advance(5);
  await scene.log.clean(0);
  assert.equal(journal.health().reason, undefined);
  await clock.advance(200);
  assert.deepEqual(await leftAfterKill(disk), new Set([idOf(last)]));
  assert.ok(journal.health().fillRatio < 0.8);
});

test("a repaired journal removes the segments that it no longer needs", async () => {
  const scene = await open();
  const { disk, journal, clock } = scene;
  for (let number = 1; scene.log.segments().length < 3; number++) await charge(scene, number);
  const [first] = disk.segments();
  disk.fault = { at: disk.calls + 1, times: 1, code: "EIO" };
  assert.equal(await charge(scene, 500), true, "written to the next segment");
  assert.equal(journal.health().usable, true);
  const count = journal.health().unsettled;
  for (let number = 1000; journal.health().fillRatio < 0.75; number++) {
    await charge(scene, number);
    journal.ack(idOf(number), "settled");
  }
  await clock.advance(200);
  await scene.log.clean(0);
  assert.ok(!disk.segments().includes(first ?? ""), "the records were written again");
  assert.equal((await leftAfterKill(disk)).size, count);
});

test("records of the oldest segment are written again, and the segment is kept until they are on the disk", async () => {
  const { scene, slow, oldest } = await pressed();
  const { disk, log, clock } = scene;
  let release = (): void => {};
  disk.gate = new Promise((resolve) => {
    release = resolve;
  });
  // The first call removes what is before the record and writes the record again.
  const cleaning = log.clean(0);
  await turns(3);
  await clock.advance(5);
  const again = log.clean(0);
  await turns(3);
  const lost = disk.afterPowerLoss(() => 0);
  const { leftovers } = await openOn(lost, new ManualClock());
  assert.ok(leftovers.some(({ ask }) => ask.requestId === idOf(slow)));
  assert.ok(disk.segments().includes(oldest));
  disk.gate = undefined;
  release();
  for (let step = 0; step < 4; step++) await clock.advance(5);
  await Promise.all([cleaning, again]);
  await log.clean(0);
  assert.ok(!disk.segments().includes(oldest));
});

test("a charge that the store takes while segments are removed is not written again after its ACK", async () => {
  const { scene, slow } = await pressed();
  const { disk, log, journal, clock } = scene;
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const remove = disk.remove.bind(disk);
  disk.remove = async (name) => {
    await gate;
    await remove(name);
  };
  const cleaning = log.clean(0);
  await turns(3);
  journal.ack(idOf(slow), "settled");
  release();
  await turns(5);
  await clock.advance(200);
  await cleaning;
  const { leftovers } = await openOn(disk.afterKill(), new ManualClock());
  assert.deepEqual(leftovers, []);
});

/** A journal short of room: records that may be removed, then a charge that the store does not take, then more such records. */
async function pressed(): Promise<{ scene: Scene; slow: number; oldest: string }> {
  const scene = await open();
  let number = 0;
  const settled = async (): Promise<void> => {
    await charge(scene, ++number);
    scene.journal.ack(idOf(number), "settled");
  };
  while (scene.log.segments().length < 2) await settled();
  await charge(scene, ++number);
  const slow = number;
  const oldest = scene.disk.segments()[scene.log.segments().length - 1] ?? "";
  while (scene.journal.health().fillRatio < 0.79) await settled();
  await scene.clock.advance(200);
  return { scene, slow, oldest };
}

test("descriptors of segments whose sync failed are closed", async () => {
  const disk = new SimDisk();
  const descriptors = watched(disk);
  const scene = await open(disk);
  const { journal, clock } = scene;
  const [first = ""] = disk.segments();
  // Without a sync in between, so that the first segment is full while it is still unsynced.
  const pending: Promise<unknown>[] = [];
  for (let number = 1; scene.log.segments().length < 3; number++) {
    pending.push(journal.final(askOf(number)));
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
  failSyncOf(disk, first);
  await Promise.all([...pending, ended(clock)]);
  await Promise.all([charged(journal, 900), ended(clock)]);
  assert.deepEqual(
    [...descriptors].sort(),
    disk.segments().slice(-2),
    "only the current segment and the spare one are open",
  );
  await journal.close();
  assert.equal(descriptors.size, 0);
});

const charged = (journal: Journal, number: number): Promise<void> => journal.final(askOf(number));

async function ended(clock: ManualClock): Promise<void> {
  for (let step = 0; step < 4; step++) await clock.advance(5);
}

/** Names of the open files. */
function watched(disk: SimDisk): Set<string> {
  const open = new Set<string>();
  const create = disk.create.bind(disk);
  disk.create = async (name, bytes) => {
    const file = await create(name, bytes);
    open.add(name);
    const close = (): void => {
      open.delete(name);
      file.close();
    };
    return { write: file.write.bind(file), sync: file.sync.bind(file), close };
  };
  return open;
}

/** Makes the next sync of this file fail. */
function failSyncOf(disk: SimDisk, name: string): void {
  let failed = false;
  Object.defineProperty(disk, "fault", {
    get() {
      if (failed || disk.lastCall !== `sync ${name}`) return undefined;
      failed = true;
      return { at: 0, times: Number.POSITIVE_INFINITY, code: "EIO" };
    },
  });
}

test("rewritten records keep their order: a charge that the store has taken meanwhile is not sent to it again", async () => {
  const scene = await open();
  const { disk, journal, clock } = scene;
  await charge(scene, 1);
  journal.open({ voided: voidOf(2), hold: nanoUsd(1n) });
  disk.fault = { at: disk.calls + 1, times: 1, code: "EIO" };
  // The store may be faster than the disk.
  const written = journal.final(askOf(2));
  journal.ack(idOf(2), "settled");
  await turns(3);
  await clock.advance(5);
  await written;
  await clock.advance(200);
  assert.deepEqual([scene.alarms.length, journal.health().usable], [1, true], "it was written to another segment");
  assert.deepEqual(await leftAfterKill(disk), new Set([idOf(1)]));
});
