/** How the settlement reads an upstream's count (src/settle/meter.ts): a single sum, cached input, extras, a tier. */
import assert from "node:assert/strict";
import test from "node:test";
import { costSoFar, settlementOf } from "../../../src/settle/charge.ts";
import type { Ending, MeasuredReply } from "../../../src/settle/meter.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Group, Model, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const [ROUTE] = MODEL.routes as [Route];
const FLEX = { ...MODEL.price, input: 1_000_000n };
const PRICED: Model = { ...MODEL, price: { ...MODEL.price, input: 2_000_000n, tiers: new Map([["flex", FLEX]]) } };
const TERMS: ChargeTerms = {
  ...{ requestId: "count" as RequestId, tag: "count" as AccountTag, keyId: "key", model: PRICED },
  group: CATALOG.groups.get("money") as Group,
  tokensTaken: 10,
  terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: "flex", tools: [], options: [] },
  ...{ hold: nanoUsd(900_000_000n), outputMost: 4_000, entitlement: undefined, unmetered: false },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

/** A final count after ten silent seconds, in each of which 150 tokens may have been hidden. */
function counted(usage: Partial<Usage>, ending: Partial<Ending> = {}): Ending {
  const measured: MeasuredReply = {
    ...{ usage: { ...NO_USAGE, ...usage }, final: true, silentMs: 10_000 },
    produced: { bytes: 4, tokens: 1, deltas: 1 },
  };
  const pace = { thinks: "yes", hiddenPerS: 150, visibleFactor: 1 } as const;
  return { delivered: true, complete: true, route: ROUTE, cause: "complete", measured, pace, ...ending };
}

test("of a count that is only a sum, everything but the input estimate is output, and no hidden output is added", () => {
  const { output, input } = JSON.parse(settlementOf(TERMS, counted({ unsplit: 100, outputUncounted: true })).ask.memo);
  assert.deepEqual([input, output], [8, 92]);
});

test("cached input counts against the context window, and a reply that reads twice has a context window for each reading", () => {
  const { contextTokens } = MODEL;
  const surprises = (usage: Partial<Usage>) => settlementOf(TERMS, counted({ output: 1, ...usage })).surprises;
  assert.deepEqual(surprises({ input: 1, cachedInput: contextTokens - 1 }), []);
  assert.deepEqual(surprises({ input: 1, cachedInput: contextTokens }), ["input_above_context"]);
  assert.deepEqual(surprises({ input: 2 * contextTokens, longestInput: contextTokens }), []);
});

test("an extra is charged if its member reached the upstream, and no translation carries it", () => {
  const terms: ChargeTerms = { ...TERMS, terms: { ...TERMS.terms, client: "responses", options: ["zoom"] } };
  const calls = (route: Route) =>
    JSON.parse(settlementOf(terms, counted({ input: 1, output: 1 }, { route })).ask.memo).tool_calls;
  const native = (openaiNative: boolean) => ({ ...ROUTE, capabilities: { ...ROUTE.capabilities, openaiNative } });
  assert.deepEqual(calls({ ...native(false), protocol: "responses" }), { zoom: 1 });
  assert.deepEqual(calls(native(true)), {});
  assert.deepEqual(calls(native(false)), {});
});

test("a running stream is priced by the tier that was sent, not the one that its client requested", () => {
  const seen = counted({ input: 1_000, output: 0 }).measured;
  const costAt = (tier: string | undefined) => costSoFar(TERMS, seen, { cause: "brake", tier }).cost;
  const [flex, standard] = [costAt("flex"), costAt(undefined)];
  assert.equal(standard - flex, 1_000n);
});
