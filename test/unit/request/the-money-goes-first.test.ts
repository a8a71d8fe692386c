/** ARCHITECTURE.md promise 3: a defect in what is told of a charge does not keep the charge from the store. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { settleRequest } from "../../../src/request/settlement.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

test("whatever the log, the metrics or the memory of a model meet, the charge is with the settler", async () => {
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
  const defect = (): never => {
    throw new Error("a defect");
  };
  for (const told of ["answeredBy", "charged", "note"]) {
    const settled: SettleAsk[] = [];
    const parts = {
      observed: { paceOf: () => ({ thinks: "no", hiddenPerS: 0, visibleFactor: 1 }), note: defect },
      ...{ cut: new AbortController().signal, settings: () => ({ leftAllowanceNano: 0 }) },
      settler: { settle: async (ask: SettleAsk) => void settled.push(ask) },
    } as unknown as PipelineParts;
    const run = {
      ...{ permit, attempts: [], settled: false, asksToThink: false, streamed: false, endpoint: {} },
      record: { answeredBy() {}, charged() {}, settled() {}, [told]: defect },
    } as unknown as Run;
    await assert.rejects(settleRequest(run, ending, parts), /a defect/, told);
    assert.equal(settled.length, 1, told);
    assert.ok((settled[0]?.amount ?? 0n) > 0n);
  }
});
