/** A simulation is reproducible down to the last microtask. Otherwise a failing seed could not be investigated. */
import assert from "node:assert/strict";
import test from "node:test";
import { simulate } from "./simulation.ts";

test("two runs of one seed have the same trace, and different seeds have different traces", async () => {
  const hashes = new Set<string>();
  for (let seed = 1; seed <= 15; seed++) {
    const [first, second] = [await simulate(seed), await simulate(seed)];
    assert.equal(first.hash, second.hash, `seed ${seed}`);
    hashes.add(first.hash);
  }
  assert.equal(hashes.size, 15);
});
