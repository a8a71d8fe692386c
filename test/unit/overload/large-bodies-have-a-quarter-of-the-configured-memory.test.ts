/** Room for large bodies is a share of `overload.memory` if it is set, however much memory the machine has. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { createOverload } from "../../../src/overload/overload.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { newAccountTag } from "../../../src/values/key.ts";
import { FakeClock } from "../dispatch/rig.ts";

const MIB = 2 ** 20;

test("the bodies of one account get half of a quarter of the configured memory", (t) => {
  const settings = {
    overload: { inFlightMax: 100, loopDelayMs: 1e9, memoryBytes: 128 * MIB },
    ...{ upstreams: new Map(), workers: 1, bodyBytesMax: MIB },
  };
  const overload = createOverload({
    ...{ settings: () => settings, journalFill: () => 0, clock: new FakeClock(), metrics: createMetrics() },
  });
  t.after(() => overload.stop());
  const room = overload.roomFor(newAccountTag(randomBytes));
  assert.equal(room.hold(16 * MIB), undefined);
  assert.equal(room.hold(16 * MIB + 2)?.cause, "overloaded");
});
