/** Records that wait for a segment: the limit is reported, and no record of a running request is dropped at it. */
import assert from "node:assert/strict";
import test from "node:test";
import { RECORD } from "../../../src/settle/journal/frame.ts";
import { decodeCharge } from "../../../src/settle/journal/payload.ts";
import { scan } from "../../../src/settle/journal/segments.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, idOf, ManualClock, openOn, turns, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const BYTES_MAX = 16 * 1024 * 1024;

test("an ACK, an OPEN and a FINAL that arrive while 10,000 records wait for a segment are written with them", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock, { bytesMax: BYTES_MAX });
  const taken = journal.final(askOf(1));
  await clock.advance(5);
  await taken;
  const release = holdCreation(disk);
  let number = 10;
  // Twice, since the segment that was kept ready takes some of the first records.
  for (let time = 0; time < 2; time++) {
    while (journal.health().usable && number < 40_000) journal.open({ voided: voidOf(++number), hold: nanoUsd(1n) });
    await turns(3);
  }
  assert.match(journal.health().reason ?? "", /too slow/);
  journal.open({ voided: voidOf(2), hold: nanoUsd(1n) });
  await assert.rejects(journal.final(askOf(3)), { name: "JournalBrokenError", message: /too slow/ });
  await assert.rejects(journal.adminWrite({ kind: "credit", id: "p", payload: {} }), /too slow/);
  journal.checkpoint(askOf(number));
  journal.ack(idOf(1), "settled");
  release();
  for (let step = 0; step < 6; step++) await clock.advance(200);
  assert.equal(journal.health().reason, undefined);
  const { leftovers } = await openOn(disk.afterKill(), new ManualClock(), { bytesMax: BYTES_MAX });
  const left = new Map(leftovers.map(({ ask, final }) => [ask.requestId, final]));
  assert.equal(left.has(idOf(1)), false, "the first charge is in the store");
  assert.equal(left.get(idOf(2)), false, "the hold of the second request is released");
  assert.equal(left.get(idOf(3)), true, "the charge of the third request is recovered");
  assert.equal(left.size, number - 10 + 2);
  await journal.close();
  await assert.rejects(journal.final(askOf(4)), /closed/);
});

test("checkpoints that arrive while the disk is slow are not queued: each request keeps its newest one in memory", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock, { bytesMax: BYTES_MAX });
  const release = holdCreation(disk);
  let number = 0;
  for (let time = 0; time < 2; time++) {
    while (journal.health().usable && number < 40_000) journal.open({ voided: voidOf(++number), hold: nanoUsd(1n) });
    await turns(3);
  }
  assert.match(journal.health().reason ?? "", /too slow/);
  for (let time = 0; time < 100; time++) journal.checkpoint(askOf(number));
  release();
  for (let step = 0; step < 6; step++) await clock.advance(200);
  assert.equal(journal.health().reason, undefined);
  journal.checkpoint(askOf(number - 1));
  await clock.advance(200);
  const checkpoints = disk
    .segments()
    .flatMap((name) => scan(disk.bytesOf(name)).frames)
    .filter(({ type }) => type === RECORD.checkpoint)
    .map(({ payload }) => decodeCharge(payload)?.ask.requestId);
  assert.deepEqual(checkpoints, [idOf(number - 1)]);
  await journal.close();
});

/** The next segment is created only when the caller says so. */
function holdCreation(disk: SimDisk): () => void {
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const create = disk.create.bind(disk);
  disk.create = async (name, bytes) => {
    await gate;
    return create(name, bytes);
  };
  return release;
}

test("a record that no segment can take is refused once, and the journal repairs itself without it", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock, { bytesMax: BYTES_MAX });
  const long = { ...askOf(1), memo: "x".repeat(40_000) };
  journal.open({ voided: voidOf(1), hold: nanoUsd(1n) });
  journal.checkpoint(long);
  await assert.rejects(journal.final(long), { name: "JournalBrokenError", message: /too long/ });
  disk.fault = { at: disk.calls + 1, times: 1, code: "EIO" };
  const next = journal.final(askOf(2));
  for (let step = 0; step < 3; step++) await clock.advance(5);
  await next;
  assert.equal(journal.health().reason, undefined);
  const { leftovers } = await openOn(disk.afterKill(), new ManualClock(), { bytesMax: BYTES_MAX });
  assert.deepEqual(
    leftovers.map(({ ask, final }) => [ask.requestId, ask.voided, final]),
    [
      [idOf(1), true, false],
      [idOf(2), false, true],
    ],
  );
  await turns(3);
  await journal.close();
});
