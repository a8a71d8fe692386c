/** What the parent reports of an upstream that several workers judge independently. */
import assert from "node:assert/strict";
import test from "node:test";
import type { UpstreamState } from "../../../src/console/routes/upstreams.ts";
import { upstreamsOfAll } from "../../../src/workers/upstreams-of-all.ts";

const east = (changes: Partial<UpstreamState> = {}): UpstreamState => ({
  ...{ name: "east", health: "healthy", reason: undefined, restMs: 0, inFlight: 2, maxConcurrency: 10, queued: 1 },
  ...{ limitedModels: new Map(), outcomes: { ok: 3 } },
  ...changes,
});

const HEALTH = ["healthy", "probe", "ejected"] as const;

test("the worst health and its reason are reported, whichever worker has them", () => {
  for (const [worse, health] of HEALTH.entries()) {
    for (const better of HEALTH.slice(0, worse)) {
      const [bad, good] = [east({ health, reason: `${health} here`, restMs: 700 }), east({ health: better })];
      for (const reports of [
        [[bad], [good]],
        [[good], [bad]],
        [[good], [bad], [good]],
      ]) {
        const [seen] = upstreamsOfAll(reports);
        assert.deepEqual([seen?.health, seen?.reason, seen?.restMs], [health, `${health} here`, 700]);
      }
    }
  }
});

test("the longest wait of a model is reported, whichever worker has it", () => {
  const views = [50, 900, 7].map((ms) => [east({ limitedModels: new Map([["big", ms]]) })]);
  for (const reports of [views, views.toReversed()])
    assert.deepEqual([...(upstreamsOfAll(reports)[0]?.limitedModels ?? [])], [["big", 900]]);
});

test("counts are added up, and the longest wait is reported", () => {
  const west = east({ name: "west" });
  const reports = [
    [east({ limitedModels: new Map([["big", 50]]), outcomes: { ok: 3, timeout: 1 } }), west],
    [east({ limitedModels: new Map([["big", 900]]), restMs: 5, outcomes: { ok: 4, reset: 2 } })],
    [east({ limitedModels: new Map([["small", 7]]), inFlight: 5 })],
  ];
  assert.deepEqual(upstreamsOfAll(reports), [
    east({
      ...{ restMs: 5, inFlight: 9, maxConcurrency: 30, queued: 3 },
      limitedModels: new Map([
        ["big", 900],
        ["small", 7],
      ]),
      outcomes: { ok: 10, timeout: 1, reset: 2 },
    }),
    west,
  ]);
});
