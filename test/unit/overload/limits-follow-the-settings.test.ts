/** Which settings an overload manager goes by, and what it does with requests and with connections at its limits. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createOverload } from "../../../src/overload/overload.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";
import { FakeClock } from "../dispatch/rig.ts";

type OverloadSettings = ReturnType<Parameters<typeof createOverload>[0]["settings"]>;

/** An overload manager that sees no load but what it is given. */
function overloadOn(t: TestContext, settings: () => OverloadSettings) {
  const overload = createOverload({
    settings,
    journalFill: () => 0,
    clock: new FakeClock(),
    metrics: createMetrics(),
  });
  t.after(() => overload.stop());
  const key = readKey(newKey(newAccountTag(randomBytes), randomBytes).text);
  assert.ok(key && key !== "noise");
  return { ...overload, key };
}

const settingsWith = (overload: Partial<OverloadSettings["overload"]>, workers = 1): OverloadSettings => ({
  overload: { inFlightMax: 1, loopDelayMs: 1e9, memoryBytes: 2 ** 50, ...overload },
  upstreams: new Map(),
  workers,
});

test("requests that are too many are refused one by one, and no connection is for their sake", (t) => {
  const settings = settingsWith({});
  const { connectionGuard, enter, at, key } = overloadOn(t, () => settings);
  assert.equal(connectionGuard.closesConnections(), false);
  assert.equal(typeof enter(key), "function");
  assert.equal(connectionGuard.closesConnections(), true, "its answers send their clients elsewhere");
  assert.equal(connectionGuard.refusesConnections(), false);
  assert.ok(isRefusal(at("headers", key)));
});

test("limits that were reloaded are in force from the next turn on", async (t) => {
  let settings = settingsWith({ inFlightMax: 1 });
  const { enter, at, key } = overloadOn(t, () => settings);
  assert.equal(typeof enter(key), "function");
  settings = settingsWith({ inFlightMax: 100 });
  await turn();
  assert.equal(at("headers", key), undefined);
  settings = settingsWith({ inFlightMax: 1 });
  await turn();
  assert.ok(isRefusal(at("headers", key)));
});

test("each of several workers has its part of the memory, unless a number is given", (t) => {
  const refuses = (workers: number, memoryBytes?: number) => {
    const settings = settingsWith({ memoryBytes }, workers);
    return overloadOn(t, () => settings).connectionGuard.refusesConnections();
  };
  assert.deepEqual([refuses(1), refuses(1e9), refuses(1e9, 2 ** 50)], [false, true, false]);
});
