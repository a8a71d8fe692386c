/** OpenMetrics gives the time of an exemplar in seconds. Prometheus drops an exemplar from the far future. */
import assert from "node:assert/strict";
import test from "node:test";
import { LabelledHistogram } from "../../../src/telemetry/series.ts";

test("an exemplar has the time of its observation, in seconds since the epoch", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_800_000_000_250 });
  const took = new LabelledHistogram({ name: "took_seconds", help: "Time.", labelNames: [], buckets: [1] });
  took.observe({}, 0.5, "1".repeat(32));
  const [exemplar] = took.snapshot(true).exemplars?.values() ?? [];
  assert.equal(exemplar?.timestamp, 1_800_000_000.25);
});
