/** The simulation repeats itself to the last microtask: without that a failing seed would be of no use. */
import assert from "node:assert/strict";
import test from "node:test";
import { simulate } from "./simulation.ts";

test("two runs of one seed leave the same trace, and two seeds do not", async () => {
  const hashes = new Set<string>();
  for (let seed = 1; seed <= 15; seed++) {
    const [first, second] = [await simulate(seed), await simulate(seed)];
    assert.equal(first.hash, second.hash, `seed ${seed}`);
    hashes.add(first.hash);
  }
  assert.equal(hashes.size, 15);
});
