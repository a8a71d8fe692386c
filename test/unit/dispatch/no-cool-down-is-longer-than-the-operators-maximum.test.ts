/** `cool_down_max` is the longest that an upstream rests: neither the random spread nor a `retry-after` exceeds it. */
import assert from "node:assert/strict";
import test from "node:test";
import { Health } from "../../../src/dispatch/upstream/health.ts";
import { FakeClock, HEALTH } from "./rig.ts";

const HIGHEST_CHANCE = 0.999_999;

for (const [title, retryAfterS] of [
  ["the random spread is at its highest", undefined],
  ["the upstream asks for an hour", 3_600],
] as const) {
  test(`an upstream rests for the maximum if ${title}`, () => {
    const clock = new FakeClock();
    const rests: number[] = [];
    const settings = { ...HEALTH, failures: 1, coolDownMs: 4_000, coolDownMaxMs: 4_000 };
    const health = new Health(settings, {
      clock,
      random: () => HIGHEST_CHANCE,
      onEjected: ({ restMs }) => rests.push(restMs),
      onReturned: () => assert.fail("nothing was answered"),
    });
    const startedAtMs = clock.monotonicMs();
    health.report({ kind: "remote", model: "m", retryAfterS, startedAtMs, probe: false });
    assert.deepEqual([rests, health.restMs("m")], [[4_000], 4_000]);
  });
}
