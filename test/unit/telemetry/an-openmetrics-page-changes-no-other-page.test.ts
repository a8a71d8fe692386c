/** A request for an OpenMetrics page changes neither later pages nor the live figures. */
import assert from "node:assert/strict";
import test from "node:test";
import { figuresOf } from "../../../src/telemetry/live-figures.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";

test("the names of metrics are the same before and after an OpenMetrics page", async () => {
  const metrics = createMetrics();
  metrics.requests.inc({ protocol: "chat", model: "m", group: "g", status: "404", cause: "unknown_model" }, 3);
  metrics.addUsd(metrics.spend, { group: "g", model: "m" }, 1_500_000_000n);
  const names = (body: string) =>
    [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  const before = names((await metrics.page()).body);
  const open = await metrics.page("application/openmetrics-text; version=1.0.0");
  assert.match(open.contentType, /^application\/openmetrics-text/);
  assert.match(open.body, /^# TYPE tollgate_requests counter$/m);
  assert.match(open.body, /^tollgate_requests_total\{.*cause="unknown_model".*\} 3$/m);
  assert.deepEqual(names((await metrics.page()).body), before);
  assert.ok(before.includes("tollgate_requests_total counter"));
  assert.deepEqual(
    names(open.body),
    before.map((one) => one.replace(/_total counter$/, " counter")),
  );
  const { requests, refusals, spendUsd } = figuresOf(await metrics.snapshot());
  assert.deepEqual([requests, refusals.get("unknown_model"), spendUsd.get("g")], [3, 3, 1.5]);
});
