/** While a stream runs, its cost is computed at the tier that was sent upstream, whatever its client requested. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { StreamBill } from "../../../src/request/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

test("the cost that is compared with the hold has the price of the tier that was sent", () => {
  const flex = { ...MODEL.price, input: 500_000n };
  const model = { ...MODEL, price: { ...MODEL.price, input: 2_000_000n, tiers: new Map([["flex", flex]]) } };
  const permit = {
    ...{ model, group: CATALOG.groups.get("money"), hold: nanoUsd(100n), outputMost: 100 },
    terms: { inputTokens: 0, inputEstimate: 0, choices: 1, tier: "flex", tools: [], options: [] },
  } as unknown as Permit;
  const parts = { observed: { paceOf: () => ({ thinks: "no" }) } } as unknown as PipelineParts;
  const [route] = MODEL.routes;
  assert.ok(route);
  const produced = { bytes: 0, tokens: 0, deltas: 0 };
  const counts = { usage: { ...NO_USAGE, input: 1_000 }, final: false, produced, silentMs: 0 };
  const costAt = (tier: string | undefined) => {
    const attempts = [{ tier }] as unknown as ConstructorParameters<typeof StreamBill>[2]["attempts"];
    return new StreamBill({ permit } as unknown as Run, permit, { route, attempts }, parts).costOf(counts).cost;
  };
  assert.deepEqual([costAt("flex"), costAt(undefined)], [500n, 2_000n]);
});
