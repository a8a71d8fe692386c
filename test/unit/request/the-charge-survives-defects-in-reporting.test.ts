/** ARCHITECTURE.md promise 3: a defect in what is reported of a charge does not keep the charge from the store. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { settleRequest } from "../../../src/request/settlement.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

/** The end of a request that was answered. */
function answered() {
  const [route] = MODEL.routes;
  assert.ok(route);
  const permit = {
    ...{ requestId: "r", tag: "t", keyId: "key", model: MODEL, group: CATALOG.groups.get("money") },
    terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
    ...{ tokensTaken: 10, hold: nanoUsd(900_000_000n), outputMost: 100, unmetered: false, storeTimeMs: 0, limits: {} },
  } as unknown as Permit;
  const usage = { ...NO_USAGE, input: 50, output: 100 };
  const measured = { usage, final: true, silentMs: 0, produced: { bytes: 400, tokens: 100, deltas: 100 } };
  const ending = { delivered: true, complete: true, cause: "complete", route, tier: undefined, attempts: [], measured };
  return { permit, ending };
}

test("an answer of a side endpoint does not affect what is known of the model's pace", async () => {
  const { permit, ending } = answered();
  const noted: unknown[] = [];
  const parts = {
    observed: {
      paceOf: () => ({ thinks: "no", hiddenPerS: 0, visibleFactor: 1 }),
      note: (route: unknown) => noted.push(route),
    },
    ...{ cut: new AbortController().signal, settings: () => ({ leftAllowanceNano: 0 }) },
    settler: { settle: async () => {} },
  } as unknown as PipelineParts;
  for (const [pathSuffix, count] of [
    ["/compact", 0],
    [undefined, 1],
  ] as const) {
    const run = {
      ...{ permit, attempts: [], settled: false, asksToThink: false, streamed: false, endpoint: { pathSuffix } },
      record: { answeredBy() {}, charged() {}, settled() {} },
    } as unknown as Run;
    await settleRequest(run, ending, parts);
    assert.equal(noted.length, count, String(pathSuffix));
  }
});

test("whatever fails in the log, the metrics or the observations of a model, the charge reaches the settler", async () => {
  const { permit, ending } = answered();
  const defect = (): never => {
    throw new Error("a defect");
  };
  for (const failing of ["answeredBy", "charged", "note"]) {
    const settled: SettleAsk[] = [];
    const parts = {
      observed: { paceOf: () => ({ thinks: "no", hiddenPerS: 0, visibleFactor: 1 }), note: defect },
      ...{ cut: new AbortController().signal, settings: () => ({ leftAllowanceNano: 0 }) },
      settler: { settle: async (ask: SettleAsk) => void settled.push(ask) },
    } as unknown as PipelineParts;
    const run = {
      ...{ permit, attempts: [], settled: false, asksToThink: false, streamed: false, endpoint: {} },
      record: { answeredBy() {}, charged() {}, settled() {}, [failing]: defect },
    } as unknown as Run;
    await assert.rejects(settleRequest(run, ending, parts), /a defect/, failing);
    assert.equal(settled.length, 1, failing);
    assert.ok((settled[0]?.amount ?? 0n) > 0n);
  }
});
