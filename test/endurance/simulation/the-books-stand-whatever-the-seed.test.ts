/**
 * docs/failure-model.md invariants 1 to 5, 7 to 12, 15 and 32 under crashes, failovers that lose data, broken disks and
 * bad networks, one process and virtual time (docs/simulation.md). A failure names its seed: `npm run sim -- --seed N
 * --trace` repeats it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { failedSeeds, openSeeds, range, runSeeds } from "./seeds.ts";
import { explain } from "./summary.ts";

/** Those that have been looked at; `npm run sim` goes further. All of them where the machine is free; on a busy one as many as its time allows, but never too few to say anything. */
const SEEDS = 2_000;
const SEEDS_MIN = 100;
const WITHIN_MS = 40_000;
const THREADS = 2;

test("nothing is lost, doubled, below zero or out of balance", async (t) => {
  const startMs = performance.now();
  const past = failedSeeds();
  const open = openSeeds();
  const wanted = (seeds: number[]) => seeds.filter((seed) => !open.has(seed));
  const options = { threads: THREADS, withinMs: 4 * WITHIN_MS };
  const first = await runSeeds({ ...options, seeds: [...past, ...wanted(range(1, SEEDS_MIN))] });
  const leftMs = Math.max(0, WITHIN_MS - (performance.now() - startMs));
  const rest = await runSeeds({ ...options, withinMs: leftMs, seeds: wanted(range(1 + SEEDS_MIN, SEEDS - SEEDS_MIN)) });
  for (const tally of [first, rest]) t.diagnostic(JSON.stringify(tally.summary(performance.now() - startMs)));
  assert.deepEqual([...first.failed, ...rest.failed].map(explain), []);
  assert.equal(first.seeds, past.length + wanted(range(1, SEEDS_MIN)).length);
});
