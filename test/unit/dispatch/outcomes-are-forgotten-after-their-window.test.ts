/** The share of failures is that of a sliding window. What is older must not eject an upstream, also after a quiet time. */
import assert from "node:assert/strict";
import test from "node:test";
import { Outcomes } from "../../../src/dispatch/upstream/outcomes.ts";

const WINDOW_MS = 60_000;
const STEP_MS = WINDOW_MS / 6;

test("an outcome counts for as long as the window, whether others follow or not", () => {
  for (const looks of [[0, 1, 2, 3, 4, 5], [5]]) {
    const outcomes = new Outcomes(WINDOW_MS);
    for (let step = 0; step < 3; step++) outcomes.add("remote", step * STEP_MS);
    for (const step of looks) assert.equal(outcomes.counts(step * STEP_MS).remote, 3, `step ${step}`);
    assert.equal(outcomes.counts(7 * STEP_MS).remote, 1, "the first two are over");
    assert.equal(outcomes.counts(8 * STEP_MS).remote, 0);
  }
});

test("after a quiet time longer than the window, nothing counts any more", () => {
  const outcomes = new Outcomes(WINDOW_MS);
  for (let step = 0; step < 6; step++) outcomes.add("local", step * STEP_MS);
  outcomes.add("ok", 100 * STEP_MS);
  const { ok, local } = outcomes.counts(100 * STEP_MS);
  assert.deepEqual([ok, local], [1, 0]);
});
