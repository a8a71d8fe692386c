/**
 * docs/failure-model.md invariants 1 to 5, 7 to 12, 15 and 32 under crashes, failovers that lose data, broken disks and
 * bad networks, in one process and virtual time (docs/simulation.md). A failure names its seed: `npm run sim -- --seed
 * N --trace` reproduces it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { failedSeeds, range, runSeeds } from "./seeds.ts";
import { explain } from "./summary.ts";

/** All of these are run, however busy the machine is. `npm run sim` runs more. */
const SEEDS = 400;
const WITHIN_MS = 280_000;
const THREADS = 2;

test("no seed loses or doubles money, or leaves an account below zero or out of balance", async (t) => {
  const startMs = performance.now();
  const seeds = [...failedSeeds(), ...range(1, SEEDS)];
  const tally = await runSeeds({ threads: THREADS, withinMs: WITHIN_MS, seeds });
  t.diagnostic(JSON.stringify(tally.summary(performance.now() - startMs)));
  assert.deepEqual(tally.failed.map(explain), []);
  assert.equal(tally.seeds, seeds.length, "all scenes ran in time");
});
