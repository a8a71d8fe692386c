/** A pause that an upstream asks for (`retry-after`) lasts as long as it asks, whatever our own judgment of it is. */
import assert from "node:assert/strict";
import test from "node:test";
import { Health } from "../../../src/dispatch/upstream/health.ts";
import { FakeClock, HEALTH } from "./rig.ts";

function healthOf(failures: number) {
  const clock = new FakeClock();
  const rests: number[] = [];
  const health = new Health(
    { ...HEALTH, failures },
    { clock, random: () => 0.5, onEjected: ({ restMs }) => rests.push(restMs), onReturned: () => {} },
  );
  const report = (kind: "remote" | "rate_limited", model: string, retryAfterS?: number) =>
    health.report({ kind, model, retryAfterS, startedAtMs: clock.monotonicMs(), probe: false });
  return { clock, rests, health, report };
}

test("an ejection lasts at least as long as the upstream asks", () => {
  const { rests, report } = healthOf(1);
  report("remote", "m", 30);
  assert.deepEqual(rests, [30_000]);
});

test("an ejected upstream is not tried for a model for which it asked for a pause", () => {
  const { clock, health, report } = healthOf(1);
  report("remote", "m");
  report("rate_limited", "m", 30);
  assert.deepEqual([health.isOnlyDoubted("m"), health.isOnlyDoubted("other")], [false, true]);
  clock.advance(30_000);
  assert.equal(health.isOnlyDoubted("m"), true);
});

test("a pause of a model is shown to operators until it is over", () => {
  const { clock, health, report } = healthOf(1_000);
  report("rate_limited", "m", 30);
  clock.advance(29_000);
  assert.deepEqual([...health.state().limitedModels], [["m", 1_000]]);
  clock.advance(1_000);
  assert.deepEqual([...health.state().limitedModels], []);
});
