/** One page of metrics of several processes: counters add up and never go back, gauges keep the worst where that is meant. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { retire, summedPage } from "../../src/telemetry/summed-metrics.ts";
import { metricSum } from "./rig.ts";

function process_(spent: bigint, pressure: number, up: 0 | 1) {
  const metrics = createMetrics();
  metrics.badKeys.inc(2);
  metrics.addUsd(metrics.spend, { group: "money", model: "big-1" }, spent);
  metrics.observeTraced(metrics.requestDuration, { protocol: "chat", model: "big-1", group: "money" }, 1.5, "abc");
  metrics.inFlight.set({ protocol: "chat" }, 3);
  metrics.pressure.set(pressure);
  metrics.storeUp.set(up);
  metrics.configReloads.inc({ result: "accepted" });
  return metrics;
}

test("of two processes, and of one of them after the other has ended", async () => {
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

  const retired = await retire(await retire([], second), second);
  const { body: after } = await summedPage([first, retired]);
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
