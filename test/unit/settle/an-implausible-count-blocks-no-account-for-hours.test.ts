/**
 * An upstream's count is charged in full, however large it is. Toward the tokens per minute of the account it counts at
 * most what the model can do: a count of a billion would otherwise refuse all requests of the account for hours.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { settlementOf } from "../../../src/settle/charge.ts";
import type { AttemptFacts } from "../../../src/settle/meter.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Group, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const price = { ...MODEL.price, input: 1_000_000n, output: 1_000_000n };
const [ANY] = MODEL.routes as [Route];
const ROUTE = { ...ANY, cost: price };
const CHOICES = 2;

const TERMS: ChargeTerms = {
  ...{ requestId: "limited" as RequestId, tag: "limited" as AccountTag, keyId: "key", tokensTaken: 10 },
  ...{ model: { ...MODEL, price, routes: [ROUTE] }, group: CATALOG.groups.get("money") as Group },
  terms: { inputTokens: 10, inputEstimate: 8, choices: CHOICES, tier: undefined, tools: [], options: [] },
  ...{ hold: nanoUsd(50n), outputMost: 100, entitlement: undefined, unmetered: false, counted: "tokens" },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

function settled(input: number, output: number) {
  const { upstream, upstreamModel: model } = ROUTE;
  const facts = { status: 200, bytesReceived: 0, sentToUpstream: true, refusedByUpstream: false };
  const attempt: AttemptFacts = { upstream, model, outcome: "ok", ...facts };
  return settlementOf(TERMS, {
    ...{ delivered: true, complete: true, route: ROUTE, cause: "complete", attempts: [attempt] },
    measured: {
      ...{ usage: { ...NO_USAGE, input, output }, final: true, silentMs: 0 },
      produced: { bytes: 0, tokens: 0, deltas: 0 },
    },
  }).ask;
}

test("a count above what the model can do is charged in full, and limits its account by what the model can do", () => {
  const most = MODEL.contextTokens + MODEL.maxOutputTokens * CHOICES;
  const usual = settled(40, 60);
  assert.deepEqual([usual.amount, usual.tokensUsed], [100n, 100]);
  const huge = settled(1e9, 1e9);
  assert.deepEqual([huge.amount, huge.tokensUsed], [2_000_000_000n, most]);
});
