/** Group commit: FINAL resolves after the fdatasync that covers it, within 5 ms of a healthy disk, and not before. */
import assert from "node:assert/strict";
import test from "node:test";
import { scan } from "../../../src/settle/journal/segments.ts";
import { askOf, ManualClock, openOn, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

test("group: one write and one sync for all of a turn, resolved after the sync", async () => {
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
  // `kill -9` finds them already.
  assert.equal(scan(disk.bytesOf(disk.segments()[0] as string)).frames.length, 4);
  assert.deepEqual(resolved, []);
  gate.resolve();
  await Promise.all(finals);
  assert.deepEqual(resolved, [1, 2, 3]);
  assert.equal(disk.syncs, 1);
  await journal.close();
});

test("what a step of a request puts is written before the loop looks at its sockets again: a kill finds it", async () => {
  const disk = new SimDisk();
  const { journal } = await openOn(disk, new ManualClock());
  const written = () => scan(disk.bytesOf(disk.segments()[0] as string)).frames.length;
  // Requests go on in the phase after the one that reads sockets, where another turn's end is a whole turn away.
  const seen = await new Promise<number>((resolve) => {
    setImmediate(() => {
      void Promise.resolve().then(() => void journal.final(askOf(1)));
      void Promise.resolve().then(() => void journal.final(askOf(2)));
      setTimeout(() => resolve(written()), 0);
      setImmediate(() => resolve(written()));
    });
  });
  assert.equal(seen, 3, "the segment's own and two");
  await journal.close();
});

for (const { company, waitMs } of [
  { company: 1, waitMs: 0 },
  { company: 2, waitMs: 4 },
]) {
  test(`after a sync that ${company} waited for, the next one begins ${waitMs} ms after its start`, async () => {
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

test("always: the sync begins without a wait", async () => {
  const disk = new SimDisk();
  const { journal } = await openOn(disk, new ManualClock(), { fsync: "always" });
  await journal.final(askOf(1));
  assert.ok(disk.syncs >= 1);
  await journal.close();
});

test("an administrative write is durable when it resolves, through a descriptor that fails too", async () => {
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

test("closing syncs what waits", async () => {
  const disk = new SimDisk();
  const { journal } = await openOn(disk, new ManualClock());
  const final = journal.final(askOf(1));
  await journal.close();
  await final;
  await assert.rejects(journal.final(askOf(2)), { name: "JournalBrokenError" });
});
