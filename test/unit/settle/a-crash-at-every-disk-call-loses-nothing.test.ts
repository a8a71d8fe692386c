/**
 * docs/failure-model.md rows A3 to A5 and F5: the process dies, or the power fails, at each call of the file system in turn.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { HurriedClock, openOn, seeded } from "./rig.ts";
import { complaints, newTruth, run, type Truth } from "./scenario.ts";
import { SimDisk } from "./sim-disk.ts";

/** Runs until the disk stops answering at call `at`; the process ends without any cleanup. */
async function until(at: number): Promise<{ disk: SimDisk; truth: Truth }> {
  const disk = new SimDisk();
  disk.fault = { at, times: Number.POSITIVE_INFINITY, code: "EIO" };
  const truth = newTruth();
  const clock = new HurriedClock();
  const opened = await openOn(disk, clock).catch(() => undefined);
  if (opened) await run(opened.journal, truth);
  clock.stop();
  return { disk, truth };
}

async function callsOfAWholeRun(): Promise<number> {
  const { disk } = await until(Number.POSITIVE_INFINITY);
  return disk.calls;
}

async function found(disk: SimDisk, truth: Truth): Promise<readonly string[]> {
  const again = await openOn(disk, new HurriedClock());
  const first = complaints(again.leftovers, truth);
  await again.journal.close();
  // A second crash right after the first recovery leads to the same state.
  const third = await openOn(disk, new HurriedClock());
  await third.journal.close();
  return [...first, ...complaints(third.leftovers, truth)];
}

test("kill -9 at each disk call loses nothing", async () => {
  const calls = await callsOfAWholeRun();
  for (let at = 1; at <= calls; at++) {
    const { disk, truth } = await until(at);
    assert.deepEqual(await found(disk.afterKill(), truth), [], `call ${at}`);
  }
});

test("a loss of power at each disk call loses nothing, with unsynced writes kept, lost or torn", async () => {
  const calls = await callsOfAWholeRun();
  for (let at = 1; at <= calls; at++) {
    const { disk, truth } = await until(at);
    for (let seed = 1; seed <= 4; seed++) {
      const after = disk.afterPowerLoss(seeded(at * 1_000 + seed));
      assert.deepEqual(await found(after, truth), [], `call ${at}, seed ${at * 1_000 + seed}`);
    }
  }
});
