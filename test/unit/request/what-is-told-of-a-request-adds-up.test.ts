/** src/request/record.ts: the gauge of what is held, and from where a first token is timed. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { createRecorder } from "../../../src/request/record.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import type { Tracing } from "../../../src/telemetry/traces.ts";
import type { Catalog } from "../../../src/values/catalog.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { FakeClock } from "../dispatch/rig.ts";

function begun() {
  const clock = new FakeClock();
  const metrics = createMetrics();
  const catalog = () => ({ models: new Map() }) as unknown as Catalog;
  const parts = { clock, metrics, catalog, tracing: {} as Tracing, log: createLog({ level: "silent" }) };
  const facts = { requestId: "r", protocol: "chat", receivedAtMs: clock.monotonicMs() };
  const record = createRecorder(parts).begin(facts);
  const valueShown = async (name: string) => {
    const { body } = await metrics.page();
    return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)`, "m").exec(body)?.[1]);
  };
  return { clock, record, valueShown };
}

const PERMIT = { group: { name: "money" }, hold: nanoUsd(1_000_000_000n), clamped: undefined } as unknown as Permit;

test("what is held is what the last extension says, and nothing at the end", async () => {
  const { record, valueShown } = begun();
  record.admitted(PERMIT);
  assert.equal(await valueShown("tollgate_holds_usd"), 1);
  record.held(nanoUsd(3_000_000_000n));
  record.held(nanoUsd(4_000_000_000n));
  assert.equal(await valueShown("tollgate_holds_usd"), 4);
  record.finish();
  assert.equal(await valueShown("tollgate_holds_usd"), 0);
});

test("a first token is timed from the last byte of the request", async () => {
  const { clock, record, valueShown } = begun();
  clock.advance(5_000);
  record.bodyRead();
  clock.advance(250);
  record.firstToken();
  assert.equal(await valueShown("tollgate_time_to_first_token_seconds_sum"), 0.25);
});
