/**
 * docs/failure-model.md rows B3 and B4: when the breaker in front of the store opens, what it lets through meanwhile,
 * and when it closes.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Breaker } from "../../../../src/store/middleware/breakers.ts";
import { ManualClock } from "../../../unit/settle/rig.ts";

function bench() {
  const clock = new ManualClock();
  const changes: boolean[] = [];
  const probes = { sent: 0, answer: async () => {} };
  const breaker = new Breaker({
    clock,
    random: () => 1,
    probe: () => {
      probes.sent++;
      return probes.answer();
    },
    onChange: (open) => void changes.push(open),
  });
  const count = (times: number, failed: boolean, tookMs = 1) => {
    for (let i = 0; i < times; i++) breaker.count(failed, tookMs);
  };
  return { clock, breaker, probes, changes, count };
}

test("five failures in a row open it; four and an answer do not", () => {
  const { breaker, count, changes } = bench();
  count(4, true);
  count(1, false);
  count(4, true);
  assert.equal(breaker.isOpen, false);
  count(1, true);
  assert.equal(breaker.isOpen, true);
  count(50, true);
  assert.deepEqual(changes, [true], "told once");
});

test("half of the last twenty failed or slow opens it, a few slow ones do not", () => {
  const few = bench();
  few.count(40, false);
  few.count(9, false, 450);
  few.count(40, false);
  assert.equal(few.breaker.isOpen, false);
  const every = bench();
  for (let i = 0; i < 10; i++) {
    assert.equal(every.breaker.isOpen, false);
    every.count(1, false);
    every.count(1, i % 2 === 0, 450);
  }
  assert.equal(every.breaker.isOpen, true, "slow answers every other time");
});

test("old calls are forgotten", async () => {
  const { clock, breaker, count } = bench();
  count(4, true);
  await clock.advance(10_001);
  count(1, true);
  assert.equal(breaker.isOpen, false);
});

test("a probe alone closes it; the pause grows to two seconds while it fails", async () => {
  const { clock, breaker, probes, changes, count } = bench();
  probes.answer = () => Promise.reject(new Error("away"));
  count(5, true);
  for (const [pauseMs, sent] of [
    [250, 1],
    [500, 2],
    [1_000, 3],
    [2_000, 4],
    [2_000, 5],
  ] as const) {
    await clock.advance(pauseMs - 1);
    assert.equal(probes.sent, sent - 1);
    await clock.advance(1);
    assert.equal(probes.sent, sent);
    assert.equal(breaker.isOpen, true);
  }
  assert.equal(breaker.openMs, 5_750);
  probes.answer = async () => {};
  await clock.advance(2_000);
  assert.deepEqual([breaker.isOpen, breaker.openMs], [false, 0]);
  assert.deepEqual(changes, [true, false]);
  count(4, true);
  assert.equal(breaker.isOpen, false, "it starts from nothing");
});

test("a probe that is answered slowly closes nothing, and one is sent at a time", async () => {
  const { clock, breaker, probes, count } = bench();
  let answer = () => {};
  probes.answer = () =>
    new Promise<void>((resolve) => {
      answer = resolve;
    });
  count(5, true);
  await clock.advance(250);
  await clock.advance(10_000);
  assert.equal(probes.sent, 1);
  answer();
  await clock.advance(0);
  assert.equal(breaker.isOpen, true);
  await clock.advance(500);
  assert.equal(probes.sent, 2);
  answer();
  await clock.advance(0);
  assert.equal(breaker.isOpen, false);
});

test("stopped, it sends nothing any more", async () => {
  const { clock, breaker, probes, count } = bench();
  count(5, true);
  breaker.stop();
  await clock.advance(10_000);
  assert.equal(probes.sent, 0);
});
