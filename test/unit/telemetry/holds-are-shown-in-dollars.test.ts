/** The gauge of holds is kept as an integer of nano-dollars: it is exact, and 0 when nothing is held. */
import assert from "node:assert/strict";
import test from "node:test";
import { createMetrics } from "../../../src/telemetry/metrics.ts";

test("holds are shown in dollars with their fractions, and as exactly 0 when all are released", async () => {
  const metrics = createMetrics();
  const shown = async () => Number(/^tollgate_holds_usd (\S+)$/m.exec((await metrics.page()).body)?.[1]);
  const holds = [100_000_000n, 200_000_000n, 1_234_567n];
  for (const nano of holds) metrics.moveHolds(nano);
  assert.equal((await shown()).toFixed(9), "0.301234567");
  for (const nano of holds) metrics.moveHolds(-nano);
  assert.equal(await shown(), 0);
});
