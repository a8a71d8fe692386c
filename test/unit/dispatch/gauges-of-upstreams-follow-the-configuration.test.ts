/** What the metrics page says of upstreams: those of the configuration in force, and waits in seconds. */
import assert from "node:assert/strict";
import test from "node:test";
import { UpstreamPool } from "../../../src/dispatch/upstream/pool.ts";
import { measureUpstreams, watchUpstreams } from "../../../src/dispatch/upstream/watch.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { byName, FakeClock, upstream } from "./rig.ts";

test("an upstream that is no longer configured has no gauges", async () => {
  const parts = { clock: new FakeClock(), random: () => 0.5, onEjected() {}, onReturned() {} };
  const pool = new UpstreamPool(byName(["east", "west"].map((name) => upstream(name, "http://127.0.0.1:1/v1"))), parts);
  const metrics = createMetrics();
  const shown = async () => {
    measureUpstreams(pool.report(), metrics);
    const { body } = await metrics.page();
    return body.split("\n").filter((line) => /^tollgate_(?:upstream_healthy|queued)\{/.test(line));
  };
  assert.deepEqual(await shown(), [
    'tollgate_upstream_healthy{upstream="east"} 1',
    'tollgate_upstream_healthy{upstream="west"} 1',
    'tollgate_queued{upstream="east"} 0',
    'tollgate_queued{upstream="west"} 0',
  ]);
  pool.replace(byName([upstream("west", "http://127.0.0.1:1/v1")]));
  assert.deepEqual(await shown(), [
    'tollgate_upstream_healthy{upstream="west"} 1',
    'tollgate_queued{upstream="west"} 0',
  ]);
  await pool.close();
});

test("a wait for a slot is measured in seconds", async () => {
  const metrics = createMetrics();
  watchUpstreams({ metrics, log: createLog({ level: "silent" }) }).onWaited("east", 1_500);
  assert.match((await metrics.page()).body, /^tollgate_queue_wait_seconds_sum\{upstream="east"\} 1\.5$/m);
});
