/** ARCHITECTURE.md promise 10, from numbers alone: who is turned away at which pressure. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { sharesOf } from "../../../src/accept/descriptors.ts";
import { createOverload, InFlight, isHeavy, shedAt } from "../../../src/overload/overload.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { hashKey, newAccountTag, newKey, readKey } from "../../../src/values/key.ts";
import { FakeClock } from "../dispatch/rig.ts";

const ONE_HEAVY = { total: 310, accounts: 6, most: 300 };
const ALL_ALIKE = { total: 300, accounts: 3, most: 100 };

const CASES = [
  ["below the first threshold everybody passes", "headers", 0.79, 300, ONE_HEAVY, undefined],
  ["the heavy account gives way first", "headers", 0.8, 300, ONE_HEAVY, "concurrency"],
  ["the others pass as long as that helps", "headers", 0.99, 2, ONE_HEAVY, undefined],
  ["a full process refuses them, too", "headers", 1, 2, ONE_HEAVY, "overloaded"],
  ["even then the heavy one is told what it is", "headers", 1, 300, ONE_HEAVY, "concurrency"],
  ["where nobody is heavy, nobody is blamed", "headers", 0.9, 100, ALL_ALIKE, undefined],
  ["and everybody is refused a little earlier", "headers", 0.95, 100, ALL_ALIKE, "overloaded"],
  ["a key of which nothing runs is nobody's", "headers", 0.95, 0, ALL_ALIKE, "overloaded"],
  ["a body that was read is let through longer", "body", 0.84, 300, ONE_HEAVY, undefined],
  ["a heavy account's body", "body", 0.85, 300, ONE_HEAVY, "concurrency"],
  ["an admitted request still longer", "upstream", 0.89, 300, ONE_HEAVY, undefined],
  ["a heavy account's admitted request", "upstream", 0.9, 300, ONE_HEAVY, "concurrency"],
  ["an admitted request has the last place", "upstream", 0.99, 1, ALL_ALIKE, undefined],
  ["behind the last place", "upstream", 1, 1, ALL_ALIKE, "overloaded"],
] as const;

for (const [name, point, pressure, own, census, expected] of CASES) {
  test(name, () => assert.equal(shedAt(point, pressure, own, census), expected));
}

test("heavy is who has half of all, or twice an equal share, and never with a handful", () => {
  assert.equal(isHeavy(7, { total: 7, accounts: 1, most: 7 }), false);
  assert.equal(isHeavy(8, { total: 8, accounts: 1, most: 8 }), true);
  assert.equal(isHeavy(50, { total: 100, accounts: 2, most: 50 }), false);
  assert.equal(isHeavy(51, { total: 100, accounts: 2, most: 51 }), true);
  assert.equal(isHeavy(30, { total: 120, accounts: 10, most: 30 }), true);
  assert.equal(isHeavy(20, { total: 120, accounts: 10, most: 30 }), false);
});

test("what is in flight is counted by account, and known by a key only while it runs", () => {
  const counts = new InFlight();
  const [busy, calm] = [newAccountTag(randomBytes), newAccountTag(randomBytes)];
  const [key, other, third] = [hashKey("a"), hashKey("b"), hashKey("c")];
  assert.deepEqual(counts.census, { total: 0, accounts: 0, most: 0 });
  const leaves = [counts.enter(busy, key), counts.enter(busy, key), counts.enter(busy, other)];
  const leaveCalm = counts.enter(calm, third);
  assert.deepEqual(counts.census, { total: 4, accounts: 2, most: 3 });
  assert.deepEqual([counts.ofKey(key), counts.ofKey(third), counts.ofKey(hashKey("forged"))], [3, 1, 0]);
  leaves[2]?.();
  leaves[2]?.();
  assert.deepEqual([counts.of(busy), counts.ofKey(other)], [2, 0]);
  leaveCalm();
  assert.deepEqual(counts.census, { total: 2, accounts: 1, most: 2 });
  for (const leave of leaves) leave();
  assert.deepEqual(counts.census, { total: 0, accounts: 0, most: 0 });
});

test("while another account has as many, the most stays as it is when one of them gets less", () => {
  const counts = new InFlight();
  const enter = (name: string, tag = newAccountTag(randomBytes)) =>
    [1, 2, 3].map(() => counts.enter(tag, hashKey(name)));
  const [first, second] = [enter("a"), enter("b")];
  first[0]?.();
  assert.deepEqual(counts.census, { total: 5, accounts: 2, most: 3 });
  second[0]?.();
  assert.deepEqual(counts.census, { total: 4, accounts: 2, most: 2 });
});

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

test("row D8: connections have half of the descriptors, and enough is left for everything else", () => {
  for (const limit of [256, 1_024, 65_536]) {
    const { connectionsMax, overflowMax, upstreamMax } = sharesOf(limit);
    assert.ok(connectionsMax < limit / 2);
    assert.ok(connectionsMax + overflowMax + upstreamMax + 64 <= limit);
  }
});
