/** Which settings an overload manager applies, and what it does with requests and connections at its limits. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import test, { type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import v8 from "node:v8";
import { sharesOf } from "../../../src/accept/descriptors.ts";
import { createOverload, type Overload } from "../../../src/overload/overload.ts";
import { FULL_RATIO } from "../../../src/settle/journal/open.ts";
import { PRESSURE_RATIO } from "../../../src/settle/journal/segments.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { type AccountTag, newAccountTag, newKey, readKey, type WellFormedKey } from "../../../src/values/key.ts";
import { FakeClock } from "../dispatch/rig.ts";

const { readFileSync } = fs;
const { getHeapStatistics } = v8;

type OverloadSettings = ReturnType<Parameters<typeof createOverload>[0]["settings"]>;

/** An overload manager that sees only the load that the test gives it. */
function overloadOn(t: TestContext, settings: () => OverloadSettings, journalFill = () => 0) {
  const metrics = createMetrics();
  const overload = createOverload({ settings, journalFill, clock: new FakeClock(), metrics });
  t.after(() => overload.stop());
  /** How many requests were refused at each point. */
  const shed = async () =>
    Object.fromEntries(
      [...(await metrics.page()).body.matchAll(/^tollgate_shed_total\{point="(\w+)"\} ([1-9]\d*)$/gm)].map(
        ([, point, count]) => [point, Number(count)],
      ),
    );
  return { ...overload, key: keyOf(newAccountTag(randomBytes)), shed };
}

/** Another key of the account each time. */
function keyOf(tag: AccountTag): WellFormedKey {
  const key = readKey(newKey(tag, randomBytes).text);
  assert.ok(key && key !== "noise");
  return key;
}

/**
 * Enters requests until one is refused.
 * @returns how many were entered.
 */
function entered(overload: Pick<Overload, "enter">, most: number, key: () => WellFormedKey): number {
  for (let count = 0; count < most; count++) if (isRefusal(overload.enter(key()))) return count;
  return most;
}

/** A machine with the descriptor limit and heap that the test gives. */
function machine(t: TestContext, { descriptors = 20_000, heapRatio = 0.1 }): void {
  fs.readFileSync = ((...ask: Parameters<typeof readFileSync>) =>
    ask[0] === "/proc/self/limits"
      ? `Max open files            ${descriptors}                ${descriptors}                files\n`
      : readFileSync(...ask)) as typeof readFileSync;
  v8.getHeapStatistics = () => ({ ...getHeapStatistics(), used_heap_size: heapRatio * 1_000, heap_size_limit: 1_000 });
  // Also for modules that have imported these by name.
  syncBuiltinESMExports();
  t.after(() => {
    Object.assign(fs, { readFileSync });
    Object.assign(v8, { getHeapStatistics });
    syncBuiltinESMExports();
  });
}

const settingsWith = (overload: Partial<OverloadSettings["overload"]>, workers = 1): OverloadSettings => ({
  overload: { inFlightMax: 1, loopDelayMs: 1e9, memoryBytes: 2 ** 50, ...overload },
  upstreams: new Map(),
  workers,
  bodyBytesMax: 2 ** 25,
});

test("the memory limit of a container is the process's, unless the machine has less", (t) => {
  const { memoryBytes: _, ...settings } = settingsWith({}).overload;
  const isShort = () => overloadOn(t, () => ({ ...settingsWith({}), overload: settings as never })).isShortOfMemory();
  machine(t, {});
  const limit = t.mock.method(process, "constrainedMemory", () => 2 ** 20);
  assert.equal(isShort(), true, "the container has 1 MiB");
  // What the kernel reports without a limit, and if it does not know.
  for (const none of [2 ** 63, 0]) {
    limit.mock.mockImplementation(() => none);
    assert.equal(isShort(), false, String(none));
  }
});

test("too many requests are refused one by one, without refusing connections", (t) => {
  const settings = settingsWith({});
  const { connectionGuard, enter, at, key } = overloadOn(t, () => settings);
  assert.equal(connectionGuard.closesConnections(), false);
  assert.equal(typeof enter(key), "function");
  assert.equal(connectionGuard.closesConnections(), true, "answers close their connections");
  assert.equal(connectionGuard.refusesConnections(), false);
  assert.ok(isRefusal(at("headers", key)));
});

test("refusals are counted by the point at which they happen", async (t) => {
  const settings = settingsWith({});
  const { connectionGuard, enter, at, key, shed } = overloadOn(t, () => settings);
  assert.equal(typeof enter(key), "function");
  assert.deepEqual(await shed(), {});
  for (const point of ["headers", "body"] as const) assert.ok(isRefusal(at(point, key)));
  for (let i = 0; i < 2; i++) assert.ok(isRefusal(enter(key)));
  connectionGuard.refused();
  assert.deepEqual(await shed(), { accept: 1, headers: 1, body: 1, upstream: 2 });
});

test("a journal causes pressure once dropping history no longer suffices, and a full one refuses every request", (t) => {
  const settings = settingsWith({ inFlightMax: 1_000 });
  const refusedAt = (fill: number) => {
    const { at, key, connectionGuard } = overloadOn(
      t,
      () => settings,
      () => fill,
    );
    assert.equal(connectionGuard.refusesConnections(), false, "each is refused in its protocol's shape");
    return (["headers", "body"] as const).filter((point) => isRefusal(at(point, key)));
  };
  const full = FULL_RATIO;
  const room = full - PRESSURE_RATIO;
  assert.deepEqual(refusedAt(PRESSURE_RATIO), []);
  assert.deepEqual(refusedAt(full - 0.06 * room), []);
  assert.deepEqual(refusedAt(full - 0.04 * room), ["headers"]);
  assert.deepEqual(refusedAt(full - 0.02 * room), ["headers", "body"]);
  assert.deepEqual(refusedAt(full), ["headers", "body"]);
});

test("the number of requests in flight is limited to twice the upstreams' concurrency, and to a thousand at least", (t) => {
  const strangers = () => keyOf(newAccountTag(randomBytes));
  const carried = (...taken: number[]) => {
    const upstreams = new Map(taken.map((maxConcurrency, i) => [`${i}`, { maxConcurrency }]));
    const settings = { ...settingsWith({ inFlightMax: undefined }), upstreams } as unknown as OverloadSettings;
    return entered(
      overloadOn(t, () => settings),
      10_000,
      strangers,
    );
  };
  machine(t, { descriptors: 100_000 });
  assert.deepEqual([carried(400, 500), carried(500), carried(1_000, 500)], [1_800, 1_000, 3_000]);
  assert.equal(carried(), 1_000);
});

test("reloaded limits apply from the next turn on", async (t) => {
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

test("each of several workers has a share of the memory, unless a number is given", (t) => {
  const refuses = (workers: number, memoryBytes?: number) => {
    const settings = settingsWith({ memoryBytes }, workers);
    return overloadOn(t, () => settings).connectionGuard.refusesConnections();
  };
  assert.deepEqual([refuses(1), refuses(1e9), refuses(1e9, 2 ** 50)], [false, true, false]);
});

test("an account that uses a new key for each request is limited like one with a single key", (t) => {
  const settings = settingsWith({ inFlightMax: 100 });
  const overload = overloadOn(t, () => settings);
  const [busy, calm] = [newAccountTag(randomBytes), newAccountTag(randomBytes)];
  assert.equal(
    entered(overload, 100, () => keyOf(busy)),
    90,
  );
  const refused = overload.enter(keyOf(busy));
  assert.ok(isRefusal(refused));
  assert.equal(refused.cause, "concurrency");
  assert.ok(!isRefusal(overload.enter(keyOf(calm))), "other accounts have the rest");
});

test("requests in flight are limited by the descriptors, however many the upstreams accept", (t) => {
  machine(t, { descriptors: 1_064 });
  const { upstreamMax } = sharesOf(1_064);
  const upstreams = new Map([["east", { maxConcurrency: 10_000 }]]) as unknown as OverloadSettings["upstreams"];
  const settings = { ...settingsWith({ inFlightMax: undefined }), upstreams };
  const overload = overloadOn(t, () => settings);
  const strangers = () => keyOf(newAccountTag(randomBytes));
  assert.equal(entered(overload, 1_000, strangers), upstreamMax);
});

test("memory counts as short if the heap is nearly full, even if the process is small", (t) => {
  const settings = settingsWith({});
  for (const [heapRatio, isShort] of [
    [0.89, false],
    [0.91, true],
  ] as const) {
    machine(t, { heapRatio });
    assert.equal(overloadOn(t, () => settings).isShortOfMemory(), isShort, `${heapRatio}`);
  }
});
