/** Group commit: FINAL resolves only after the fdatasync that covers it, on a healthy disk within 5 ms. */
import assert from "node:assert/strict";
import test from "node:test";
import { scan } from "../../../src/settle/journal/segments.ts";
import { askOf, ManualClock, openOn, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

test("group: the records of one turn share one write and one sync, and resolve after the sync", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock);
  const gate = Promise.withResolvers<void>();
  disk.gate = gate.promise;
  const resolved: number[] = [];
  const finals = [1, 2, 3].map((number) => journal.final(askOf(number)).then(() => resolved.push(number)));
  const { calls } = disk;
  await turns();
  assert.equal(disk.calls - calls, 1, "one write");
  // The bytes are written by now, so that they survive `kill -9`.
  assert.equal(scan(disk.bytesOf(disk.segments()[0] as string)).frames.length, 4);
  assert.deepEqual(resolved, []);
  gate.resolve();
  await Promise.all(finals);
  assert.deepEqual(resolved, [1, 2, 3]);
  assert.equal(disk.syncs, 1);
  await journal.close();
});

test("records put during a request are written before the loop polls its sockets again, so that they survive a kill", async () => {
  const disk = new SimDisk();
  const { journal } = await openOn(disk, new ManualClock());
  const written = () => scan(disk.bytesOf(disk.segments()[0] as string)).frames.length;
  // Requests continue in the phase after the poll phase, where the end of the turn is a whole turn away.
  const seen = await new Promise<number>((resolve) => {
    setImmediate(() => {
      void Promise.resolve().then(() => void journal.final(askOf(1)));
      void Promise.resolve().then(() => void journal.final(askOf(2)));
      setTimeout(() => resolve(written()), 0);
      setImmediate(() => resolve(written()));
    });
  });
  assert.equal(seen, 3, "one record of the segment and the two charges");
  await journal.close();
});

for (const { company, waitMs } of [
  { company: 1, waitMs: 0 },
  { company: 2, waitMs: 4 },
]) {
  test(`after a sync that ${company} waited for, the next sync starts ${waitMs} ms after the start of that one`, async () => {
    const disk = new SimDisk();
    const clock = new ManualClock();
    const { journal } = await openOn(disk, clock);
    const gate = Promise.withResolvers<void>();
    disk.gate = gate.promise;
    const first = Array.from({ length: company }, (_, index) => journal.final(askOf(index + 1)));
    await turns();
    let isDurable = false;
    const late = journal.final(askOf(9)).then(() => {
      isDurable = true;
    });
    assert.equal(disk.syncs, 0);
    gate.resolve();
    await Promise.all(first);
    await turns();
    for (let ms = 0; ms < waitMs; ms++) {
      assert.equal(isDurable, false, `not ${ms} ms after`);
      await clock.advance(1);
    }
    await late;
    assert.equal(disk.syncs, 2);
    await journal.close();
  });
}

test("always: the sync starts immediately", async () => {
  const disk = new SimDisk();
  const { journal } = await openOn(disk, new ManualClock(), { fsync: "always" });
  await journal.final(askOf(1));
  assert.ok(disk.syncs >= 1);
  await journal.close();
});

test("an administrative write is durable when it resolves, also when the first descriptor fails", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal, alarms } = await openOn(disk, clock);
  disk.fault = { at: disk.calls + 2, times: 1, code: "EIO" };
  const written = journal.adminWrite({ kind: "credit", id: "pay-1", payload: { tag: "TAG", amount: "5" } });
  await clock.advance(2);
  await clock.advance(2);
  await written;
  assert.match(alarms[0] as string, /segment failed/);
  const found = disk.segments().flatMap((name) => scan(disk.afterPowerLoss(() => 0).bytesOf(name)).frames);
  assert.ok(found.some(({ payload }) => payload.toString().includes('"pay-1"')));
  await journal.close();
});

test("closing the journal syncs what is still unsynced", async () => {
  const disk = new SimDisk();
  const { journal } = await openOn(disk, new ManualClock());
  const final = journal.final(askOf(1));
  await journal.close();
  await final;
  await assert.rejects(journal.final(askOf(2)), { name: "JournalBrokenError" });
});
