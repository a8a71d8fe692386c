/** The gauge that decides about shedding: of all limits of a process the nearest one counts. */
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
  ["never more than 1", { ...REST, loopDelayMs: 9_000 }, { inFlight: 500, journal: 3 }, 1],
] as const;

for (const [name, vitals, load, expected] of CASES) {
  test(name, () => assert.equal(pressureOf(vitals, load, LIMITS), expected));
}

/** Blocks the loop, as a flood of work would, and leaves the CPU to others. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("one stall is no pressure, a loop that stalls in two windows is", async () => {
  let nowMs = 0;
  const meter = createVitalsMeter({ monotonicMs: () => nowMs });
  const window = async (stallMs: number) => {
    for (let turn = 0; turn < 2; turn++) {
      stall(stallMs);
      // The delay is seen by a timer of the loop itself.
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
