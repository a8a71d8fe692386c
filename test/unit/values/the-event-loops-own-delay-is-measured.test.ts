/** The delay of a process's own event loop, which it must not mistake for slowness of others. */
import assert from "node:assert/strict";
import test from "node:test";
import { OwnDelay, ownDelayMs, systemClock } from "../../../src/values/time.ts";

/** A clock whose timers are run by the test, as late as it likes. */
function bench() {
  const timers: { readonly atMs: number; readonly task: () => void }[] = [];
  const world = { nowMs: 1_000 };
  const delay = new OwnDelay({
    monotonicMs: () => world.nowMs,
    after(ms, task) {
      timers.push({ atMs: world.nowMs + ms, task });
      return () => assert.fail("the timer is never cancelled");
    },
  });
  /** Lets time pass; each timer runs when it is due. */
  const pass = (ms: number) => {
    const untilMs = world.nowMs + ms;
    for (let first = timers[0]; first && first.atMs <= untilMs; first = timers[0]) {
      timers.shift();
      world.nowMs = first.atMs;
      first.task();
    }
    world.nowMs = untilMs;
  };
  /** The process is blocked, and runs its timers afterwards. */
  const hold = (ms: number) => {
    world.nowMs += ms;
    for (const { task } of timers.splice(0)) task();
  };
  return { delay, world, timers, pass, hold };
}

test("a process whose timers are punctual has no delay", () => {
  const { delay, pass, hold } = bench();
  assert.equal(delay.totalMs, 0);
  pass(500);
  hold(24);
  assert.equal(delay.totalMs, 0);
});

test("time blocked beyond the next beat is counted as the process's own delay, and adds up", () => {
  const { delay, pass, hold } = bench();
  assert.equal(delay.totalMs, 0);
  hold(500);
  assert.equal(delay.totalMs, 480);
  pass(100);
  assert.equal(delay.totalMs, 480);
  hold(120);
  assert.equal(delay.totalMs, 580);
});

test("a delay counts before the timer has run, since a reply may be read first", () => {
  const { delay, world, hold } = bench();
  assert.equal(delay.totalMs, 0);
  world.nowMs += 300;
  assert.equal(delay.totalMs, 280);
  hold(0);
  assert.equal(delay.totalMs, 280, "counted once");
});

test("the beat stops a second after the last query, and restarts with the next one", () => {
  const { delay, pass, hold, timers } = bench();
  assert.equal(delay.totalMs, 0);
  pass(1_000);
  assert.equal(timers.length, 1);
  assert.equal(delay.totalMs, 0);
  pass(1_000);
  assert.equal(timers.length, 1, "there was a query");
  pass(100);
  assert.equal(timers.length, 0);
  hold(10_000);
  assert.equal(delay.totalMs, 0, "there was no query");
  assert.equal(timers.length, 1);
  hold(70);
  assert.equal(delay.totalMs, 50);
});

test("the system clock reports the delay, and a test clock need not", () => {
  const before = ownDelayMs(systemClock);
  const untilMs = performance.now() + 60;
  while (performance.now() < untilMs);
  assert.ok(ownDelayMs(systemClock) - before >= 30);
  const { ownDelayMs: _, ...plain } = systemClock;
  assert.equal(ownDelayMs(plain), 0);
});
