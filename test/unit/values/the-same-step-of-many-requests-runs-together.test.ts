import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, Cohort } from "../../../src/values/time.ts";

/** A clock whose turns the test ends. */
function turns() {
  const waiting: (() => void)[] = [];
  const clock: Clock = {
    monotonicMs: () => 0,
    wallMs: () => 0,
    after: () => () => {},
    afterTurn(task) {
      waiting.push(task);
      return () => {};
    },
  };
  return { clock, scheduled: () => waiting.length, end: () => waiting.shift()?.() };
}

test("callers of one turn continue at its end in the order of their calls, one step each", async () => {
  const { clock, end, scheduled } = turns();
  const cohort = new Cohort(clock);
  const seen: string[] = [];
  const run = async (name: string) => {
    seen.push(`${name} asks`);
    await cohort.join();
    seen.push(`${name} first`);
    await undefined;
    seen.push(`${name} second`);
  };
  const all = ["a", "b", "c"].map(run);
  await Promise.resolve();
  assert.deepEqual(seen, ["a asks", "b asks", "c asks"]);
  assert.equal(scheduled(), 1);
  end();
  await Promise.all(all);
  assert.deepEqual(seen.slice(3), ["a first", "b first", "c first", "a second", "b second", "c second"]);
});

test("a task that is added by a step runs in the next turn", () => {
  const { clock, end, scheduled } = turns();
  const cohort = new Cohort(clock);
  const seen: number[] = [];
  cohort.add(() => {
    seen.push(1);
    cohort.add(() => seen.push(3));
  });
  cohort.add(() => seen.push(2));
  end();
  assert.deepEqual(seen, [1, 2]);
  assert.equal(scheduled(), 1);
  end();
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(scheduled(), 0);
});

test("a step that throws does not stop later steps", () => {
  const { clock, end, scheduled } = turns();
  const cohort = new Cohort(clock);
  const seen: number[] = [];
  cohort.add(() => {
    cohort.add(() => seen.push(3));
    throw new Error("a defect");
  });
  cohort.add(() => seen.push(2));
  assert.throws(end, /a defect/);
  assert.deepEqual(seen, []);
  while (scheduled() > 0) end();
  assert.deepEqual(seen, [2, 3]);
});

test("after a step that throws the remaining steps run, even if nothing is added, and so do steps added later", () => {
  const { clock, end, scheduled } = turns();
  const cohort = new Cohort(clock);
  const seen: number[] = [];
  cohort.add(() => {
    throw new Error("a defect");
  });
  cohort.add(() => seen.push(1));
  assert.throws(end, /a defect/);
  assert.equal(scheduled(), 1);
  cohort.add(() => seen.push(2));
  while (scheduled() > 0) end();
  assert.deepEqual(seen, [1, 2]);
});
