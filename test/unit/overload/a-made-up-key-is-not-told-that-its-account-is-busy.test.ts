/**
 * Before the store has confirmed a key, only the keys of running requests are known. A key that anybody can make up with
 * the tag of another account must not show how many requests that account has running.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { createOverload } from "../../../src/overload/overload.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { type AccountTag, newAccountTag, newKey, readKey, type WellFormedKey } from "../../../src/values/key.ts";
import { FakeClock } from "../dispatch/rig.ts";

function keyOf(tag: AccountTag): WellFormedKey {
  const key = readKey(newKey(tag, randomBytes).text);
  assert.ok(key && key !== "noise");
  return key;
}

test("the busiest account's own key is refused with 429, and another key with its tag goes on like any unknown key", (t) => {
  const settings = {
    overload: { inFlightMax: 100, loopDelayMs: 1e9, memoryBytes: 2 ** 50 },
    ...{ upstreams: new Map(), workers: 1, bodyBytesMax: 2 ** 25 },
  };
  const overload = createOverload({
    ...{ settings: () => settings, journalFill: () => 0, clock: new FakeClock(), metrics: createMetrics() },
  });
  t.after(() => overload.stop());
  const busy = newAccountTag(randomBytes);
  const running = keyOf(busy);
  // Above the pressure from which the busiest accounts are refused, and below that from which all are.
  for (let i = 0; i < 88; i++) assert.ok(!isRefusal(overload.enter(running)));
  for (const point of ["headers", "body"] as const) {
    assert.equal(overload.at(point, running)?.cause, "concurrency");
    assert.equal(overload.at(point, keyOf(busy)), undefined, "a made-up key");
    assert.equal(overload.at(point, keyOf(newAccountTag(randomBytes))), undefined, "a key of another account");
  }
});
