/** While a stream runs, its cost includes the extras that its request asked for, so that its hold is raised in time. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { StreamBill } from "../../../src/request/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

test("the cost that is compared with the hold has the price of each extra", () => {
  const price = { ...MODEL.price, input: 2_000_000n, tools: new Map([["models", 700n]]), extras: new Set(["models"]) };
  const parts = { observed: { paceOf: () => ({ thinks: "no" }) } } as unknown as PipelineParts;
  const [route] = MODEL.routes;
  assert.ok(route);
  const produced = { bytes: 0, tokens: 0, deltas: 0 };
  const counts = { usage: { ...NO_USAGE, input: 1_000 }, final: false, produced, silentMs: 0 };
  const costWith = (options: readonly string[]) => {
    const permit = {
      ...{ model: { ...MODEL, price }, group: CATALOG.groups.get("money"), hold: nanoUsd(100n), outputMost: 100 },
      terms: { inputTokens: 0, inputEstimate: 0, choices: 1, client: "chat", tools: [], options },
    } as unknown as Permit;
    return new StreamBill({ permit } as unknown as Run, permit, { route, attempts: [] }, parts).costOf(counts).cost;
  };
  assert.deepEqual([costWith([]), costWith(["models"])], [2_000n, 2_700n]);
});
