/** How late a process was itself: what it must not take for the slowness of others. */
import assert from "node:assert/strict";
import test from "node:test";
import { OwnDelay, ownDelayMs, systemClock } from "../../../src/values/time.ts";

/** A clock whose timers are run by the test: as late as it likes. */
function bench() {
  const timers: { readonly atMs: number; readonly task: () => void }[] = [];
  const world = { nowMs: 1_000 };
  const delay = new OwnDelay({
    monotonicMs: () => world.nowMs,
    after(ms, task) {
      timers.push({ atMs: world.nowMs + ms, task });
      return () => assert.fail("a beat is never called off");
    },
  });
  /** Lets time pass; each timer is run when it is due. */
  const pass = (ms: number) => {
    const untilMs = world.nowMs + ms;
    for (let first = timers[0]; first && first.atMs <= untilMs; first = timers[0]) {
      timers.shift();
      world.nowMs = first.atMs;
      first.task();
    }
    world.nowMs = untilMs;
  };
  /** The process stands still, and runs its timers after that. */
  const hold = (ms: number) => {
    world.nowMs += ms;
    for (const { task } of timers.splice(0)) task();
  };
  return { delay, world, timers, pass, hold };
}

test("a process whose timers are punctual is never late", () => {
  const { delay, pass, hold } = bench();
  assert.equal(delay.totalMs, 0);
  pass(500);
  hold(24);
  assert.equal(delay.totalMs, 0);
});

test("what it stands still beyond the next beat is its own delay, and adds up", () => {
  const { delay, pass, hold } = bench();
  assert.equal(delay.totalMs, 0);
  hold(500);
  assert.equal(delay.totalMs, 480);
  pass(100);
  assert.equal(delay.totalMs, 480);
  hold(120);
  assert.equal(delay.totalMs, 580);
});

test("a delay counts before the timer has run: a reply may be read first", () => {
  const { delay, world, hold } = bench();
  assert.equal(delay.totalMs, 0);
  world.nowMs += 300;
  assert.equal(delay.totalMs, 280);
  hold(0);
  assert.equal(delay.totalMs, 280, "and once");
});

test("the beat ends a second after the last question, and begins with the next one", () => {
  const { delay, pass, hold, timers } = bench();
  assert.equal(delay.totalMs, 0);
  pass(1_000);
  assert.equal(timers.length, 1);
  assert.equal(delay.totalMs, 0);
  pass(1_000);
  assert.equal(timers.length, 1, "somebody has asked");
  pass(100);
  assert.equal(timers.length, 0);
  hold(10_000);
  assert.equal(delay.totalMs, 0, "nobody was waiting");
  assert.equal(timers.length, 1);
  hold(70);
  assert.equal(delay.totalMs, 50);
});

test("the machine's clock knows of it, one of a test need not", () => {
  const before = ownDelayMs(systemClock);
  const untilMs = performance.now() + 60;
  while (performance.now() < untilMs);
  assert.ok(ownDelayMs(systemClock) - before >= 30);
  const { ownDelayMs: _, ...plain } = systemClock;
  assert.equal(ownDelayMs(plain), 0);
});
