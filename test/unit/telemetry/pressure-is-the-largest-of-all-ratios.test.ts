/** The gauge that decides about load shedding: of all limits of a process the one that is nearest is used. */
import assert from "node:assert/strict";
import test from "node:test";
import { createVitalsMeter, pressureOf } from "../../../src/telemetry/pressure.ts";

const LIMITS = { inFlightMax: 100, loopDelayMs: 1_000, memoryBytes: 1_000_000 };
const REST = { loopDelayMs: 0, rssBytes: 0, heapRatio: 0 };
const IDLE = { inFlight: 0, journal: 0 };

const CASES = [
  ["at rest", REST, IDLE, 0],
  ["the loop's delay", { ...REST, loopDelayMs: 500 }, IDLE, 0.5],
  ["memory", { ...REST, rssBytes: 900_000 }, IDLE, 0.9],
  ["the heap", { ...REST, heapRatio: 0.7 }, IDLE, 0.7],
  ["requests in flight", REST, { ...IDLE, inFlight: 80 }, 0.8],
  ["the journal", REST, { ...IDLE, journal: 0.25 }, 0.25],
  ["the largest of several", { ...REST, loopDelayMs: 300, heapRatio: 0.6 }, { inFlight: 50, journal: 0.1 }, 0.6],
  ["several limits exceeded", { ...REST, loopDelayMs: 9_000 }, { inFlight: 500, journal: 3 }, 1],
] as const;

for (const [name, vitals, load, expected] of CASES) {
  test(`the pressure is ${expected}: ${name}`, () => assert.equal(pressureOf(vitals, load, LIMITS), expected));
}

/** Blocks the event loop, as much work would, without using the CPU. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("a stall in one window is not pressure, and stalls in two windows are", async () => {
  let nowMs = 0;
  const meter = createVitalsMeter({ monotonicMs: () => nowMs });
  const window = async (stallMs: number) => {
    for (let turn = 0; turn < 2; turn++) {
      stall(stallMs);
      // A timer of the event loop measures the delay.
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    nowMs += 600;
    return meter.read().loopDelayMs;
  };
  try {
    await window(1);
    const quiet = await window(1);
    const once = await window(1_500);
    const twice = await window(1_500);
    assert.ok(once < 1_000, `one window: ${once} ms behind ${quiet} ms`);
    assert.ok(twice > 1_000, `two windows: ${twice} ms`);
    assert.ok((await window(1)) <= twice);
    assert.ok(meter.read().rssBytes > 1_000_000);
  } finally {
    meter.stop();
  }
});

test("the process is measured at most twice a second, however often it is asked", () => {
  let nowMs = 0;
  const meter = createVitalsMeter({ monotonicMs: () => nowMs });
  try {
    const first = meter.read();
    nowMs = 499;
    assert.equal(meter.read(), first);
    nowMs = 500;
    assert.notEqual(meter.read(), first);
  } finally {
    meter.stop();
  }
});
