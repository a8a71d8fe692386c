/**
 * `tollgate_tokens_total` is compared with the ledger: it has the tokens of charged answers, by kind. Cache writes for five
 * minutes and for an hour are one kind, and an answer that no client pays for adds nothing.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { reportCharge } from "../../../src/request/record/charge-report.ts";
import type { Charge } from "../../../src/settle/charge.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";

/** The counts by kind after one request. */
async function counted(voided: boolean): Promise<Record<string, number>> {
  const metrics = createMetrics();
  const usage = { ...NO_USAGE, input: 10, cachedInput: 20, cacheWrite: 3, cacheWrite1h: 4, output: 50 };
  const charge = {
    ...{ ask: { voided }, metered: { usage, counted: "upstream" }, surprises: [], unpaidCalls: [] },
  } as unknown as Charge;
  const request = { requestId: "r", group: "money", model: "big-1", upstream: "east" };
  reportCharge(charge, request, { metrics, log: createLog({ level: "silent" }) });
  const found = (await metrics.page()).body.matchAll(/^tollgate_tokens_total\{.*kind="(\w+)".*\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, kind, count]) => [kind, Number(count)]));
}

test("a charged answer adds its tokens by kind, and one that is not charged adds none", async () => {
  assert.deepEqual(await counted(false), { input: 10, cached_input: 20, cache_write: 7, output: 50 });
  assert.deepEqual(await counted(true), {});
});
