/**
 * One metrics page for several processes: counters add up and never decrease, and gauges show the worst value where
 * that is defined.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createLog } from "../../../../src/telemetry/log.ts";
import { createMetrics } from "../../../../src/telemetry/metrics.ts";
import { RetiredMetrics, summedPage } from "../../../../src/telemetry/summed-metrics.ts";
import { WorkerPool } from "../../../../src/workers/pool.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { PlayedProcess } from "./played-process.ts";
import { metricSum } from "./rig.ts";

function process_(spent: bigint, pressure: number, up: 0 | 1) {
  const metrics = createMetrics();
  metrics.badKeys.inc({}, 2);
  metrics.addUsd(metrics.spend, { group: "money", model: "big-1" }, spent);
  metrics.requestDuration.observe({ protocol: "chat", model: "big-1", group: "money" }, 1.5, "abc");
  metrics.inFlight.inc({ protocol: "chat" }, 3);
  metrics.pressure.set(pressure);
  metrics.storeUp.set(up);
  metrics.configReloads.inc({ result: "accepted" });
  return metrics;
}

test("a page sums two processes, and keeps the counters of one after it has ended", async () => {
  const first = await process_(1_000_000_000n, 0.2, 1).snapshot();
  const second = await process_(2_000_000_000n, 0.7, 0).snapshot();
  const { body: both, contentType } = await summedPage([first, second]);
  assert.match(contentType, /^text\/plain/);
  const expected = {
    tollgate_bad_keys_total: 4,
    tollgate_spend_usd_total: 3,
    tollgate_request_duration_seconds_count: 2,
    tollgate_request_duration_seconds_sum: 3,
    tollgate_in_flight: 6,
    tollgate_pressure: 0.7,
    tollgate_store_up: 0,
    tollgate_config_reloads_total: 1,
  };
  for (const [name, sum] of Object.entries(expected)) assert.equal(metricSum(both, name), sum, name);

  const retired = new RetiredMetrics();
  retired.add(second);
  retired.add(second);
  const { body: after } = await summedPage([first, ...retired.snapshots]);
  const later = {
    tollgate_bad_keys_total: 6,
    tollgate_request_duration_seconds_count: 3,
    tollgate_in_flight: 3,
    tollgate_pressure: 0.2,
    tollgate_store_up: 1,
  };
  for (const page of [both, after]) {
    assert.equal(String(execFileSync("promtool", ["check", "metrics"], { input: page, stdio: "pipe" })), "");
  }
  for (const [name, sum] of Object.entries(later)) assert.equal(metricSum(after, name), sum, name);
});

test("a process that dies while a page waits for another is counted once, on this page and on every later one", async () => {
  const clock = new HandClock();
  const played: PlayedProcess[] = [];
  const fleet = new WorkerPool({
    workers: 3,
    started: { text: "", files: new Map() },
    file: "tollgate.yaml",
    pretty: false,
    fork() {
      const process = new PlayedProcess();
      played.push(process);
      return process.asChild;
    },
    clock,
    log: createLog({ level: "silent" }),
    onEnded() {},
    onAudited() {},
  });
  const badKeys = async () => metricSum((await summedPage(await fleet.metrics())).body, "tollgate_bad_keys_total");
  const metrics = await process_(1n, 0, 1).snapshot();
  const sendMetrics = (process: PlayedProcess | undefined) =>
    process?.say({ kind: "metrics", figures: { metrics, upstreams: [] } });
  void fleet.start();
  for (const process of played) process.serve();
  const before = badKeys();
  for (const process of played) sendMetrics(process);
  assert.equal(await before, 6);

  const during = badKeys();
  sendMetrics(played[0]);
  // All pending promises have run by then: its answer has been received.
  await turn();
  // Its answer is no longer awaited; two processes end in one tick, and one of them has answered.
  played[0]?.end(1);
  played[1]?.end(null, "SIGKILL");
  await turn();
  assert.deepEqual(
    fleet.states().map(({ up }) => up),
    [false, false, true],
  );
  sendMetrics(played[2]);
  assert.equal(await during, 6, "each process is counted once");

  const after = badKeys();
  sendMetrics(played[2]);
  assert.equal(await after, 6, "the figures of both ended processes are kept");
  clock.advance(1_000);
  for (const process of played.slice(3)) process.serve();
  const later = badKeys();
  for (const process of [played[2], ...played.slice(3)]) sendMetrics(process);
  assert.equal(await later, 10, "their replacements are counted from zero in addition");
});
