/** What cannot be found is accepted as missing after ten minutes of lookups; time in which the process slept does not count. */
import assert from "node:assert/strict";
import test from "node:test";
import { letterFor } from "../../../src/settle/journal/dead-letters.ts";
import { Absences, DoubtfulError } from "../../../src/settle/recovery/absences.ts";
import { askOf, ManualClock, voidOf } from "./rig.ts";

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
  /** Looks this often, with this much time before each. @returns the first look that accepts the absence. */
  const looks = async (count: number, everyMs: number) => {
    for (let look = 1; look <= count; look++) {
      await clock.advance(everyMs);
      if (isBelieved()) return look;
    }
    return undefined;
  };
  return { clock, absences, isBelieved, looks };
}

test("an absence is accepted after ten minutes of lookups, a second or a minute apart", async () => {
  for (const everyMs of [1_000, 60_000]) {
    const { isBelieved, looks } = bench();
    assert.equal(isBelieved(), false);
    assert.equal(await looks(600_000 / everyMs - 1, everyMs), undefined);
    assert.equal(await looks(1, everyMs), 1);
  }
});

test("hours without a lookup count as one minute", async () => {
  const { isBelieved, looks } = bench();
  assert.equal(isBelieved(), false);
  assert.equal(await looks(9, 3_600_000), undefined);
  assert.equal(await looks(1, 3_600_000), 1);
});

test("the ten minutes start again when the missing thing is found in between", async () => {
  const { absences, isBelieved, looks } = bench();
  assert.equal(isBelieved(), false);
  await looks(9, 60_000);
  absences.forget("a");
  assert.equal(isBelieved(), false);
  assert.equal(await looks(9, 60_000), undefined);
});

const REFUSAL = { refusal: "WRONGTYPE" };
const GONE = { outcome: "unknown_account" } as const;

/** Judges this often, a minute apart. @returns how often the answer was accepted. */
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

test("a refusal of ten minutes is accepted for all charges of the account, and for one charge alone if the account takes others", async () => {
  const { absences, clock } = bench();
  const refused = { reason: "refused", detail: "WRONGTYPE" } as const;
  assert.equal(await judgings(10, clock, () => absences.judge(askOf(3), REFUSAL, refused)), 0);
  for (const number of [3, 6]) assert.doesNotThrow(() => absences.judge(askOf(number), REFUSAL, refused));
  absences.taken(askOf(9));
  assert.throws(() => absences.judge(askOf(12), REFUSAL, refused), DoubtfulError);
  const taking = () => {
    absences.taken(askOf(9));
    absences.judge(askOf(12), REFUSAL, refused);
  };
  assert.equal(await judgings(10, clock, taking), 0);
  assert.doesNotThrow(taking);
});

test("any other answer to a charge restarts the ten minutes of its account and of the charge", async () => {
  for (const [reason, answer] of [
    ["unknown_account", GONE],
    ["refused", REFUSAL],
  ] as const) {
    const { absences, clock } = bench();
    const letter = { reason, detail: undefined };
    assert.equal(await judgings(10, clock, () => absences.judge(askOf(3), answer, letter)), 0);
    absences.judge(askOf(3), { outcome: "duplicate" }, undefined);
    assert.equal(await judgings(10, clock, () => absences.judge(askOf(3), answer, letter)), 0, reason);
  }
});

test("giving a hold back to a missing account does not restart the ten minutes of the account's charges", async () => {
  const { absences, clock } = bench();
  const both = () => {
    absences.judge(voidOf(6), GONE, letterFor(voidOf(6), false, GONE));
    absences.judge(askOf(3), GONE, letterFor(askOf(3), false, GONE));
  };
  assert.equal(await judgings(10, clock, both), 0);
  assert.doesNotThrow(both);
});

test("at most 100,000 absences are tracked: further ones are never accepted, and tracked ones still are", async () => {
  const { absences, clock, isBelieved, looks } = bench();
  assert.equal(isBelieved(), false);
  for (let number = 1; number < 100_000; number++) {
    assert.throws(() => absences.doubt(`${number}`, "gone"), DoubtfulError);
  }
  assert.equal(await judgings(30, clock, () => absences.doubt("one more", "gone")), 0);
  assert.equal(isBelieved(), false, "half an hour without a lookup counts as one minute");
  assert.equal(await looks(9, 60_000), 9);
});
