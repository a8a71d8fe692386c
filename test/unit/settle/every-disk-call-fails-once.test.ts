/**
 * docs/failure-model.md rows A5 and F2: whichever call of the file system fails, the journal continues in a new segment and
 * loses nothing.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { nanoUsd } from "../../../src/values/money.ts";
import { HurriedClock, idOf, ManualClock, openOn, seeded, voidOf } from "./rig.ts";
import { complaints, missingOrphans, newTruth, run } from "./scenario.ts";
import { type Fault, SimDisk } from "./sim-disk.ts";

interface Outcome {
  readonly disk: SimDisk;
  readonly complaints: readonly string[];
  /** Orphans that are missing or wrong. */
  readonly orphans: readonly string[];
  readonly refused: number;
  readonly opened: boolean;
}

async function attempt(fsync: "group" | "always", fault: Fault | undefined): Promise<Outcome> {
  const disk = new SimDisk();
  disk.fault = fault;
  const truth = newTruth();
  const clock = new HurriedClock();
  const opened = await openOn(disk, clock, { fsync }).catch(() => undefined);
  if (opened) {
    await run(opened.journal, truth);
  }
  const unplugged = await openOn(disk.afterPowerLoss(seeded(fault?.at ?? 0)), new HurriedClock());
  await opened?.journal.close();
  clock.stop();
  const again = await openOn(disk.afterKill(), new HurriedClock());
  await Promise.all([again, unplugged].map(({ journal }) => journal.close()));
  return {
    disk,
    complaints: [...complaints(again.leftovers, truth), ...complaints(unplugged.leftovers, truth)],
    orphans: opened ? missingOrphans(again.leftovers) : [],
    refused: truth.refused.size,
    opened: opened !== undefined,
  };
}

for (const fsync of ["group", "always"] as const) {
  test(`${fsync}: one failing call, each in turn, loses and refuses nothing`, async () => {
    const whole = await attempt(fsync, undefined);
    assert.deepEqual(whole.complaints, []);
    assert.ok(whole.disk.calls > 60, "the run rotates and syncs often");
    let begun = 0;
    for (let at = 1; at <= whole.disk.calls; at++) {
      const outcome = await attempt(fsync, { at, times: 1, code: "EIO" });
      assert.deepEqual([...outcome.complaints, ...outcome.orphans], [], `call ${at}`);
      // One failure refuses no charge; a failure before the journal is open is reported at once.
      if (outcome.opened) begun++;
      assert.equal(outcome.refused, 0, `call ${at}`);
    }
    assert.ok(begun > whole.disk.calls - 12);
  });

  test(`${fsync}: after three failing calls in a row accepted charges are kept, and the others are refused`, async () => {
    const whole = await attempt(fsync, undefined);
    let refused = 0;
    for (let at = 1; at <= whole.disk.calls; at += 2) {
      const outcome = await attempt(fsync, { at, times: 3, code: "ENOSPC" });
      assert.deepEqual(outcome.complaints, [], `call ${at}`);
      refused += outcome.refused;
    }
    assert.ok(refused > 0, "some of the faults break the journal");
  });
}

test("when a call fails as the journal closes, unsynced records are synced in another segment", async () => {
  for (let nth = 1; ; nth++) {
    const disk = new SimDisk();
    const clock = new ManualClock();
    const { journal } = await openOn(disk, clock);
    journal.open({ voided: voidOf(1), hold: nanoUsd(1n) });
    disk.fault = { at: disk.calls + nth, times: 1, code: "EIO" };
    const last = disk.calls + nth;
    await journal.close();
    const { leftovers } = await openOn(
      disk.afterPowerLoss(() => 0),
      new ManualClock(),
    );
    assert.deepEqual(
      leftovers.map(({ ask }) => ask.requestId),
      [idOf(1)],
      `call ${nth}: ${disk.lastCall}`,
    );
    if (disk.calls < last) break;
  }
});
