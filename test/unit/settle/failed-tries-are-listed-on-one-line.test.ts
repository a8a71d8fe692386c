/**
 * If no upstream answered, each try that cost something has a ledger line of its own. All tries of the request, also those
 * that cost nothing, are listed once: on the last of these lines.
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
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const price = { ...MODEL.price, input: 1_000_000n, output: 1_000_000n };
const [ANY] = MODEL.routes as [Route];
const ROUTES = ["east", "west", "north"].map((upstream) => ({ ...ANY, upstream, cost: price }));

const TERMS: ChargeTerms = {
  ...{ requestId: "tries" as RequestId, tag: "tries" as AccountTag, keyId: "key", tokensTaken: 10 },
  ...{ model: { ...MODEL, price, routes: ROUTES }, group: CATALOG.groups.get("money") as Group },
  terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
  ...{ hold: nanoUsd(50n), outputMost: 100, entitlement: undefined, unmetered: false, counted: "tokens" },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

function tried({ upstream, upstreamModel: model }: Route, sentToUpstream: boolean): AttemptFacts {
  const facts = { status: undefined, bytesReceived: 0, refusedByUpstream: false };
  return { upstream, model, outcome: "upstream_timeout", sentToUpstream, ...facts };
}

test("three tries of which two cost something make two lines, and the last one lists all three", () => {
  const [east, west, north] = ROUTES as [Route, Route, Route];
  const { ask } = settlementOf(TERMS, {
    ...{ delivered: false, complete: false, route: undefined, cause: "upstream_timeout" },
    attempts: [tried(east, true), tried(north, false), tried(west, true)],
    measured: { usage: undefined, final: false, produced: { bytes: 0, tokens: 0, deltas: 0 }, silentMs: 0 },
  });
  const listed = ask.attempts?.map(({ upstream, memo }) => [
    upstream,
    (JSON.parse(memo).attempts as { upstream: string }[] | undefined)?.map((one) => one.upstream),
  ]);
  assert.deepEqual(listed, [
    ["east", undefined],
    ["west", ["east", "north", "west"]],
  ]);
});
