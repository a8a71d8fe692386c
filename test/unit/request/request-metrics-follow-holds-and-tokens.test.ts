/** src/request/record.ts: the gauge of held funds, and the start of the time to the first token. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { createRecorder } from "../../../src/request/record.ts";
import { settlementOf } from "../../../src/settle/charge.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import type { Tracing } from "../../../src/telemetry/traces.ts";
import type { Catalog } from "../../../src/values/catalog.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";
import { FakeClock } from "../dispatch/rig.ts";

function begun() {
  const clock = new FakeClock();
  const metrics = createMetrics();
  const catalog = () => ({ models: new Map() }) as unknown as Catalog;
  const parts = { clock, metrics, catalog, tracing: {} as Tracing, log: createLog({ level: "silent" }) };
  const facts = { requestId: "r", frontRequest: undefined, protocol: "chat", receivedAtMs: clock.monotonicMs() };
  const record = createRecorder(parts).begin(facts);
  const valueShown = async (name: string) => {
    const { body } = await metrics.page();
    return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)`, "m").exec(body)?.[1]);
  };
  return { clock, record, valueShown };
}

const PERMIT = { group: { name: "money" }, hold: nanoUsd(1_000_000_000n), clamped: undefined } as unknown as Permit;

test("the gauge shows the last extension of a hold, and nothing at the end", async () => {
  const { record, valueShown } = begun();
  record.admitted(PERMIT);
  assert.equal(await valueShown("tollgate_holds_usd"), 1);
  record.held(nanoUsd(3_000_000_000n));
  record.held(nanoUsd(4_000_000_000n));
  assert.equal(await valueShown("tollgate_holds_usd"), 4);
  record.finish();
  assert.equal(await valueShown("tollgate_holds_usd"), 0);
});

test("the time to the first token starts at the last byte of the request", async () => {
  const { clock, record, valueShown } = begun();
  clock.advance(5_000);
  record.bodyRead();
  clock.advance(250);
  record.firstToken();
  assert.equal(await valueShown("tollgate_time_to_first_token_seconds_sum"), 0.25);
});

test("the pace of a model is its output divided by the time from the first token to the end of its stream", async () => {
  const { clock, record, valueShown } = begun();
  clock.advance(5_000);
  record.bodyRead();
  clock.advance(250);
  record.firstToken();
  clock.advance(4_000);
  record.charged(chargeOf(200));
  assert.equal(await valueShown("tollgate_output_tokens_per_second_sum"), 50);
});

test("a reply without a first token, or without output, has no effect on its model's pace", async () => {
  for (const [begins, output] of [
    [false, 200],
    [true, 0],
  ] as const) {
    const { clock, record, valueShown } = begun();
    record.bodyRead();
    if (begins) record.firstToken();
    clock.advance(4_000);
    record.charged(chargeOf(output));
    assert.ok(!((await valueShown("tollgate_output_tokens_per_second_count")) > 0));
  }
});

/** The charge of a stream with this much output. */
function chargeOf(output: number) {
  const [route] = MODEL.routes;
  const permit = {
    ...{ requestId: "r", tag: "t", keyId: "key", model: MODEL, group: CATALOG.groups.get("money") },
    terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
    ...{
      tokensTaken: 10,
      hold: nanoUsd(900_000_000n),
      outputMost: 1_000,
      unmetered: false,
      storeTimeMs: 0,
      limits: {},
    },
  } as unknown as Permit;
  const usage = { ...NO_USAGE, input: 50, output };
  const measured = { usage, final: true, silentMs: 0, produced: { bytes: 4 * output, tokens: output, deltas: output } };
  const ending = { delivered: true, complete: true, cause: "complete", route, attempts: [], measured } as const;
  const pace = { thinks: "no", hiddenPerS: 0, visibleFactor: 1 } as const;
  return settlementOf(permit, { ...ending, pace, leftAllowance: undefined } as Parameters<typeof settlementOf>[1]);
}
