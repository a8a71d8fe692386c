/** What is looked for in vain is believed to be gone after ten minutes in which it was looked for, and not of sleep. */
import assert from "node:assert/strict";
import test from "node:test";
import { Absences, DoubtfulError } from "../../../src/settle/recovery/absences.ts";
import { ManualClock } from "./rig.ts";

function bench() {
  const clock = new ManualClock();
  const absences = new Absences(clock);
  const isBelieved = () => {
    try {
      absences.doubt("a", "no such account");
      return true;
    } catch (error) {
      assert.ok(error instanceof DoubtfulError);
      return false;
    }
  };
  /** Looks so often, with so much time before each. @returns the first look that believes it. */
  const looks = async (count: number, everyMs: number) => {
    for (let look = 1; look <= count; look++) {
      await clock.advance(everyMs);
      if (isBelieved()) return look;
    }
    return undefined;
  };
  return { clock, absences, isBelieved, looks };
}

test("after ten minutes of looks, a second or a minute apart", async () => {
  for (const everyMs of [1_000, 60_000]) {
    const { isBelieved, looks } = bench();
    assert.equal(isBelieved(), false);
    assert.equal(await looks(600_000 / everyMs - 1, everyMs), undefined);
    assert.equal(await looks(1, everyMs), 1);
  }
});

test("hours in which nothing ran count as a minute", async () => {
  const { isBelieved, looks } = bench();
  assert.equal(isBelieved(), false);
  assert.equal(await looks(9, 3_600_000), undefined);
  assert.equal(await looks(1, 3_600_000), 1);
});

test("what was found in between is doubted anew", async () => {
  const { absences, isBelieved, looks } = bench();
  assert.equal(isBelieved(), false);
  await looks(9, 60_000);
  absences.forget("a");
  assert.equal(isBelieved(), false);
  assert.equal(await looks(9, 60_000), undefined);
});
