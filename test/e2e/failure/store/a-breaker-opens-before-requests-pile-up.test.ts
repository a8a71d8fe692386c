/**
 * docs/failure-model.md rows B3 and B4: when the circuit breaker in front of the store opens, what it lets through
 * while open, and when it closes.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../../src/store/contract.ts";
import { Breaker, Breakers } from "../../../../src/store/middleware/breakers.ts";
import { createLog } from "../../../../src/telemetry/log.ts";
import { ManualClock, turns } from "../../../unit/settle/rig.ts";
import { tagOf } from "../../../unit/store/asks.ts";

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

test("five failures in a row open the breaker; four failures and a success do not", () => {
  const { breaker, count, changes } = bench();
  count(4, true);
  count(1, false);
  count(4, true);
  assert.equal(breaker.isOpen, false);
  count(1, true);
  assert.equal(breaker.isOpen, true);
  count(50, true);
  assert.deepEqual(changes, [true], "the change is reported once");
});

test("if half of the last twenty calls failed or were slow, the breaker opens; a few slow calls do not open it", () => {
  const few = bench();
  few.count(40, false);
  few.count(9, false, 450);
  few.count(40, false);
  assert.equal(few.breaker.isOpen, false);
  few.count(9, false, 450);
  assert.equal(few.breaker.isOpen, false, "the first nine are older than the window");
  const every = bench();
  for (let i = 0; i < 10; i++) {
    assert.equal(every.breaker.isOpen, false);
    every.count(1, false);
    every.count(1, i % 2 === 0, 450);
  }
  assert.equal(every.breaker.isOpen, true, "every other answer is slow");
});

test("failures that are more than ten seconds old do not count", async () => {
  const { clock, breaker, count } = bench();
  count(4, true);
  await clock.advance(10_001);
  count(1, true);
  assert.equal(breaker.isOpen, false);
});

test("a probe refused for its account counts as an answer: one broken account does not keep the breaker open for others", async () => {
  const { clock, breaker, probes, count } = bench();
  probes.answer = () => Promise.reject(new StoreError("unavailable", "WRONGTYPE", { outcome: "refused" }));
  count(5, true);
  await clock.advance(250);
  assert.equal(breaker.isOpen, false);
});

test("a probe uses an account that has been answered before, if there is one", async () => {
  const clock = new ManualClock();
  const probed: string[] = [];
  const [answered, broken] = [tagOf("One"), tagOf("Two")];
  const breakers = new Breakers({
    store: {
      async admit({ tag }) {
        probed.push(tag);
        return { outcome: "refused", cause: "unknown_key" } as never;
      },
      shardOf: () => "",
    },
    clock,
    random: () => 1,
    metrics: { storeBreakerOpen: { set: () => {} } as never },
    log: createLog({ level: "silent" }),
  });
  // Not just the first account of that server.
  const busy = new StoreError("unavailable", "WRONGTYPE", { outcome: "refused" });
  await breakers.request(broken, () => Promise.reject(busy)).catch(() => {});
  await breakers.request(answered, async () => {});
  const away = () => Promise.reject(new StoreError("unavailable", "away"));
  for (let time = 0; time < 5; time++) await breakers.request(broken, away).catch(() => {});
  await clock.advance(250);
  assert.deepEqual(probed, [answered]);
  breakers.stop();
});

test("only a probe closes the breaker; the pause grows to two seconds while probes fail", async () => {
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
  assert.equal(breaker.isOpen, false, "the count starts at zero");
});

test("a slow probe does not close the breaker, and only one probe is sent at a time", async () => {
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

test("a stopped breaker sends no more probes", async () => {
  const { clock, breaker, probes, count } = bench();
  count(5, true);
  breaker.stop();
  await clock.advance(10_000);
  assert.equal(probes.sent, 0);
});

/**
 * Breakers of one server whose calls and probes take `tookMs`, of which `ownMs` is the delay of this process itself.
 */
function breakersBench(tookMs: number, world: { ownMs: number }) {
  const clock = Object.assign(new ManualClock(), { ownDelayMs: () => ownMs });
  let ownMs = 0;
  const take = async () => {
    clock.nowMs += tookMs;
    ownMs += world.ownMs;
  };
  const open: number[] = [];
  const breakers = new Breakers({
    store: { admit: take as never, shardOf: () => "one" },
    clock,
    random: () => 1,
    metrics: { storeBreakerOpen: { set: (value: number) => void open.push(value) } as never },
    log: createLog({ level: "silent" }),
  });
  const call = async (times: number) => {
    for (let i = 0; i < times; i++) await breakers.request(tagOf("Slow"), take);
  };
  return { clock, call, open };
}

test("a delay of this process itself does not open the breaker and does not keep it open", async () => {
  const late = breakersBench(450, { ownMs: 60 });
  await late.call(100);
  assert.deepEqual(late.open, [0]);
  const world = { ownMs: 40 };
  const slow = breakersBench(450, world);
  await slow.call(20);
  assert.deepEqual(slow.open, [0, 1]);
  await assert.rejects(slow.call(1), /the store does not answer in time/);
  await slow.clock.advance(250);
  assert.deepEqual(slow.open, [0, 1], "a slow probe does not close the breaker");
  world.ownMs = 60;
  await slow.clock.advance(500);
  await turns();
  assert.deepEqual(slow.open, [0, 1, 0]);
});
