/** Workers played by the test, and a clock that it moves: when a worker is restarted, and when one is killed. */
import assert from "node:assert/strict";
import cluster from "node:cluster";
import test, { type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createLog } from "../../../../src/telemetry/log.ts";
import { createMetrics, type MetricsSnapshot, type WorkerEnd } from "../../../../src/telemetry/metrics.ts";
import type { Settings } from "../../../../src/values/settings.ts";
import { WorkerPool } from "../../../../src/workers/pool.ts";
import { startWorkers } from "../../../../src/workers/workers.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { PlayedProcess } from "./played-process.ts";

const figures = (name: string) => ({ metrics: [{ name }] as unknown as MetricsSnapshot, upstreams: [] });
const STARTED = { text: "the start's", files: new Map() };

function scene(workers: number) {
  const clock = new HandClock();
  const started: PlayedProcess[] = [];
  const ended: (WorkerEnd | undefined)[] = [];
  let isForkRefused = false;
  const fleet = new WorkerPool({
    workers,
    started: STARTED,
    file: "tollgate.yaml",
    pretty: false,
    fork() {
      if (isForkRefused) throw new Error("spawn ENOMEM");
      const process = new PlayedProcess();
      started.push(process);
      return process.asChild;
    },
    clock,
    log: createLog({ level: "silent" }),
    onEnded(cause) {
      ended.push(cause);
    },
    onAudited() {},
  });
  return {
    clock,
    fleet,
    started,
    ended,
    newest: () => started.at(-1) as PlayedProcess,
    refuseFork(refused: boolean) {
      isForkRefused = refused;
    },
    /** Advances the clock by whole seconds in which these processes answer. */
    pass(seconds: number, answering: () => readonly PlayedProcess[] = () => started) {
      for (let i = 0; i < seconds; i++) {
        clock.advance(1_000);
        for (const process of answering()) if (process.connected) process.say({ kind: "pong" });
      }
    },
  };
}

test("restarts are delayed longer each time up to a limit, and immediate again after a long time without failures", async () => {
  const { clock, fleet, started, ended, newest, pass } = scene(2);
  const first = fleet.start();
  for (const process of started) process.serve();
  assert.equal((await first).kind, "tcp");
  assert.deepEqual([fleet.reasons(), fleet.notes()], [[], []]);
  for (const waitMs of [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]) {
    const before = started.length;
    newest().end(1);
    assert.deepEqual([fleet.reasons(), fleet.notes()], [[], ["worker 2 is down"]]);
    pass(Math.floor((waitMs - 1) / 1_000));
    clock.advance((waitMs - 1) % 1_000);
    assert.equal(started.length, before, `not before ${waitMs} ms`);
    clock.advance(1);
    assert.equal(started.length, before + 1);
  }
  newest().serve();
  pass(30);
  newest().end(null, "SIGKILL");
  clock.advance(200);
  newest().serve();
  assert.deepEqual([fleet.reasons(), fleet.notes()], [[], []]);
  assert.equal(started.length, 11);
  assert.deepEqual(ended, [...Array(8).fill("failed"), "killed"]);
});

test("a starting worker may be silent for two minutes, a serving one for a quarter of a minute", async () => {
  const { clock, fleet, started, ended, newest, pass } = scene(2);
  const first = fleet.start();
  for (const process of started) process.serve();
  await first;
  newest().end(1);
  clock.advance(200);
  // As with a long journal to read first.
  const slow = newest();
  const others = () => started.filter((process) => process !== slow);
  pass(120, others);
  assert.deepEqual(slow.signals, []);
  pass(1, others);
  assert.deepEqual(slow.signals, ["SIGKILL"]);
  clock.advance(400);
  const stuck = newest();
  assert.notEqual(stuck, slow);
  stuck.prepare();
  pass(15, () => started.filter((process) => process !== stuck));
  assert.deepEqual(stuck.signals, []);
  pass(1, () => started.filter((process) => process !== stuck));
  assert.deepEqual(stuck.signals, ["SIGKILL"]);
  assert.deepEqual(ended, ["failed", "stuck", "stuck"]);
});

test("while no other worker serves, a worker is restarted within a second", async () => {
  const { clock, fleet, started, newest, pass } = scene(2);
  void fleet.start().catch(() => {});
  started[0]?.serve();
  for (let i = 0; i < 6; i++) {
    newest().end(1);
    pass(10);
  }
  const before = started.length;
  newest().end(1);
  started[0]?.end(0);
  assert.deepEqual(fleet.reasons(), ["worker 1 is down", "worker 2 is down"]);
  clock.advance(200);
  assert.equal(started.length, before + 1, "worker 1 ended for the first time");
  for (let i = 0; i < 6; i++) {
    newest().end(1);
    clock.advance(1_000);
    assert.equal(started.length, before + 2 + i, "the worker that ended last is restarted within a second");
  }
});

test("if the system cannot create a process, the start is retried", async () => {
  const { clock, fleet, started, newest, refuseFork } = scene(1);
  const first = fleet.start();
  newest().serve();
  await first;
  refuseFork(true);
  newest().end(0);
  clock.advance(200);
  assert.deepEqual([started.length, fleet.reasons()], [1, ["worker 1 is down"]]);
  refuseFork(false);
  clock.advance(400);
  assert.equal(started.length, 2);
  // The other way in which node:child_process reports that there is no process.
  newest().pid = undefined;
  newest().emit("error", new Error("spawn EAGAIN"));
  clock.advance(800);
  assert.equal(started.length, 3);
});

test("a worker that a message cannot reach has not ended: no second one is started beside it", async () => {
  const { clock, fleet, started, ended, newest, pass } = scene(1);
  const first = fleet.start();
  newest().serve();
  await first;
  newest().emit("error", new Error("write EPIPE"));
  clock.advance(200);
  pass(2);
  assert.deepEqual([started.length, ended, fleet.reasons()], [1, [], []]);
});

test("reasons that a worker reported against readiness are dropped when it ends", async () => {
  const { clock, fleet, newest } = scene(1);
  const first = fleet.start();
  newest().serve();
  await first;
  newest().say({ kind: "reasons", reasons: ["the store is away"] });
  assert.deepEqual(fleet.reasons(), ["worker 1: the store is away"]);
  newest().end(1);
  clock.advance(200);
  newest().serve();
  assert.deepEqual(fleet.reasons(), []);
});

test("a first start that fails says why", async () => {
  const { fleet, newest } = scene(1);
  const first = fleet.start();
  newest().say({ kind: "failed", reason: "the port is taken" });
  newest().end(1);
  await assert.rejects(first, /the port is taken/);
  await fleet.stop("close", 1);
});

test("a worker told to end is not restarted, and is killed only if it does not end", async () => {
  const { clock, fleet, started, ended, newest, pass } = scene(1);
  void fleet.start();
  newest().serve();
  const stopped = fleet.stop("drain", 60_000);
  assert.deepEqual(newest().told.at(-1), { kind: "stop", how: "drain" });
  newest().say({ kind: "draining" });
  pass(59);
  clock.advance(999);
  assert.deepEqual(newest().signals, []);
  clock.advance(1);
  assert.deepEqual(newest().signals, ["SIGKILL"]);
  await stopped;
  clock.advance(60_000);
  assert.equal(started.length, 1);
  assert.deepEqual(ended, [undefined], "no worker is reported as the cause");
});

const ADDRESS = { kind: "tcp", host: "127.0.0.1", port: 1 } as const;
const settingsWith = (deadlineMs: number) =>
  ({ workers: 1, listen: ADDRESS, drain: { lameDuckMs: 1_000, deadlineMs } }) as Settings;

/** A gateway with one worker, which serves. */
async function serving(t: TestContext) {
  const clock = new HandClock();
  const played = new PlayedProcess();
  const metrics = createMetrics();
  t.mock.method(cluster, "fork", () => ({ process: played.asChild, on() {} }));
  const starting = startWorkers({
    file: "tollgate.yaml",
    settings: settingsWith(60_000),
    copy: STARTED,
    log: createLog({ level: "silent" }),
    pretty: false,
    clock,
    startParent: async () => ({
      admin: ADDRESS,
      metrics,
      audit: { take() {} },
      apply: () => ({ restart: [], gone: [], generation: 2 }),
      reloadFailed: () => metrics.configLastReloadSuccess.set(0),
      async close() {},
    }),
  });
  await turn();
  played.serve();
  return { clock, played, metrics, gateway: await starting };
}

test("if a reload takes effect late, a refusal after it is still reported", async (t) => {
  const { played, metrics, gateway } = await serving(t);
  const isSuccess = async () => /^tollgate_config_last_reload_success (\d)/m.exec((await metrics.page()).body)?.[1];
  const first = gateway.reload(settingsWith(60_000), STARTED);
  gateway.reloadFailed([]);
  played.say({ kind: "configured", generation: 2 });
  await first;
  assert.equal(await isSuccess(), "0");
  const next = gateway.reload(settingsWith(60_000), STARTED);
  played.say({ kind: "configured", generation: 3 });
  await next;
  assert.equal(await isSuccess(), "1");
  const closed = gateway.close();
  played.end(0);
  await closed;
});

test("after a reload workers are killed by the new drain deadline", async (t) => {
  const { clock, played, gateway } = await serving(t);
  const reloaded = gateway.reload(settingsWith(600_000), STARTED);
  played.say({ kind: "configured", generation: 2 });
  await reloaded;
  const drained = gateway.drain();
  // Its streams continue, and it reports that it is alive.
  for (let second = 0; second < 630; second++) {
    clock.advance(1_000);
    played.say({ kind: "pong" });
  }
  assert.deepEqual(played.signals, []);
  clock.advance(1_000);
  assert.deepEqual(played.signals, ["SIGKILL"]);
  await drained;
});

test("a worker that is slow to report its figures is represented by its last ones", async () => {
  const { clock, fleet, newest } = scene(1);
  void fleet.start();
  newest().serve();
  const asked = fleet.figures();
  newest().say({ kind: "metrics", figures: figures("old") });
  assert.deepEqual(await asked, [figures("old")]);
  const again = fleet.figures();
  clock.advance(1_000);
  assert.deepEqual(await again, [figures("old")]);
  clock.advance(2_000);
  assert.deepEqual(fleet.reasons(), ["worker 1 does not answer"]);
  assert.deepEqual(await fleet.figures(), [figures("old")], "the answer does not wait for a stuck worker");
});
