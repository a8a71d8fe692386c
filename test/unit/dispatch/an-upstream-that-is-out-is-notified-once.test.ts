/** The operator gets a notice when an upstream goes out of rotation and one when it is back, however long that takes. */
import assert from "node:assert/strict";
import test from "node:test";
import { watchUpstreams } from "../../../src/dispatch/upstream/watch.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";

function watched() {
  const notices: string[] = [];
  const log = createLog({ level: "silent" });
  const { onEjected, onReturned } = watchUpstreams({
    metrics: createMetrics(),
    log,
    notify: (kind, data) => notices.push([kind, ...Object.values(data)].join(" ")),
  });
  const eject = (repeated: number) => onEjected("east", { reason: "failures", restMs: 4_200, repeated });
  return { notices, eject, back: () => onReturned("east") };
}

test("a probe that fails is not notified again, and a later failure is", () => {
  const { notices, eject, back } = watched();
  for (const repeated of [1, 2, 3]) eject(repeated);
  back();
  assert.deepEqual(notices, ["upstream_out east failures 5", "upstream_back east"]);
  eject(4);
  assert.deepEqual(notices.slice(2), ["upstream_out east failures 5"]);
});

test("the return of an upstream whose end was not notified is not notified either", () => {
  const { notices, back } = watched();
  back();
  assert.deepEqual(notices, []);
});
