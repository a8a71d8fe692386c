/** What is looked for in vain is believed to be gone after ten minutes in which it was looked for, and not of sleep. */
import assert from "node:assert/strict";
import test from "node:test";
import { Absences, DoubtfulError } from "../../../src/settle/recovery/absences.ts";
import { askOf, ManualClock } from "./rig.ts";

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

/** Judges so often, a minute apart. @returns how often it was believed. */
async function judgings(times: number, clock: ManualClock, judge: () => void): Promise<number> {
  let believed = 0;
  for (let time = 0; time < times; time++) {
    try {
      judge();
      believed++;
    } catch (error) {
      assert.ok(error instanceof DoubtfulError);
    }
    await clock.advance(60_000);
  }
  return believed;
}

test("an account that has refused for ten minutes is believed with all its charges, and with one alone where it takes others", async () => {
  const { absences, clock } = bench();
  const refused = { reason: "refused", detail: "WRONGTYPE" } as const;
  assert.equal(await judgings(10, clock, () => absences.judge(askOf(3), refused)), 0);
  for (const number of [3, 6]) assert.doesNotThrow(() => absences.judge(askOf(number), refused));
  absences.taken(askOf(9));
  assert.throws(() => absences.judge(askOf(12), refused), DoubtfulError);
  const taking = () => {
    absences.taken(askOf(9));
    absences.judge(askOf(12), refused);
  };
  assert.equal(await judgings(10, clock, taking), 0);
  assert.doesNotThrow(taking);
});

test("any other answer to a charge ends the doubt of its account, and of itself", async () => {
  for (const reason of ["unknown_account", "refused"] as const) {
    const { absences, clock } = bench();
    const letter = { reason, detail: undefined };
    assert.equal(await judgings(10, clock, () => absences.judge(askOf(3), letter)), 0);
    absences.judge(askOf(3), undefined);
    assert.equal(await judgings(10, clock, () => absences.judge(askOf(3), letter)), 0, reason);
  }
});

test("so many absences are remembered; more are doubted for ever, and those that are known go on", async () => {
  const { absences, clock, isBelieved, looks } = bench();
  assert.equal(isBelieved(), false);
  for (let number = 1; number < 100_000; number++) {
    assert.throws(() => absences.doubt(`${number}`, "gone"), DoubtfulError);
  }
  assert.equal(await judgings(30, clock, () => absences.doubt("one more", "gone")), 0);
  assert.equal(isBelieved(), false, "half an hour without a look counts as a minute");
  assert.equal(await looks(9, 60_000), 9);
});
