/**
 * docs/decisions/what-a-disconnect-costs.md: calls of hosted tools without a final count. Earlier none were charged, so a client
 * that disconnected or hit a stop string at the right time got them for free.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { attemptFactsOf } from "../../../src/request/disconnect.ts";
import type { Run } from "../../../src/request/run.ts";
import { costSoFar, settlementOf } from "../../../src/settle/charge.ts";
import type { Ending, MeasuredReply } from "../../../src/settle/meter.ts";
import { Observed } from "../../../src/settle/observed.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Group, Model, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const [ROUTE] = MODEL.routes as [Route];
const SEARCH_NANO = 10_000_000n;
const SEARCHING: Model = {
  ...MODEL,
  contextTokens: 50_000,
  price: { ...MODEL.price, tools: new Map([["web_search", SEARCH_NANO]]) },
  toolCalls: { held: 10, max: 50 },
};
const TERMS: ChargeTerms = {
  ...{ requestId: "left" as RequestId, tag: "left" as AccountTag, keyId: "key", model: SEARCHING },
  group: CATALOG.groups.get("money") as Group,
  tokensTaken: 10,
  terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: ["web_search"], options: [] },
  ...{ hold: nanoUsd(900_000_000n), outputMost: 5_000, entitlement: undefined, unmetered: false },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

/** A stream that has shown this many searches, and the tokens of their results. */
function seen(web_search: number, foundTokens = 0): MeasuredReply {
  const served = web_search > 0 ? { calls: { web_search }, foundTokens } : undefined;
  return { usage: undefined, final: false, silentMs: 0, produced: { bytes: 4, tokens: 1, deltas: 1, served } };
}

function charged(protocol: Protocol, measured: MeasuredReply, end: Partial<Ending> = {}) {
  const left = { delivered: true, complete: false, cause: "client_gone" };
  const ending: Ending = { ...left, measured, route: { ...ROUTE, protocol }, ...end };
  const { input, tool_calls } = JSON.parse(settlementOf(TERMS, ending).ask.memo);
  return { searches: tool_calls?.web_search ?? 0, input };
}

test("tool calls that a stream has shown are charged if it ends without a final count, whatever ended it", () => {
  const causes = ["client_gone", "brake", "draining", "orphaned", "upstream_invalid"];
  for (const cause of causes) {
    for (const protocol of ["messages", "responses"] as const) {
      assert.deepEqual([cause, charged(protocol, seen(20), { cause }).searches], [cause, 20]);
    }
  }
  assert.equal(charged("responses", seen(20), { stopped: true, complete: true, cause: "complete" }).searches, 20);
  // Never more than the most that a final count would be charged for.
  assert.equal(charged("responses", seen(60)).searches, 50);
});

test("calls beyond those in the hold are charged above the hold, which limits all other estimates", () => {
  const left = { delivered: true, complete: false, cause: "client_gone", route: ROUTE };
  const hold = nanoUsd(10n * SEARCH_NANO + 1_000n);
  const amount = (searches: number) =>
    settlementOf({ ...TERMS, hold }, { ...left, measured: seen(searches, 40_000) }).ask.amount;
  assert.deepEqual([amount(20), amount(12), amount(10)], [hold + 10n * SEARCH_NANO, hold + 2n * SEARCH_NANO, hold]);
});

test("search results count as input beside the request's, limited by the model's context", () => {
  assert.equal(charged("messages", seen(20, 3_000)).input, 10 + 3_000);
  const snapshot = { ...seen(20, 3_000), usage: { ...NO_USAGE, input: 700, output: 1 } };
  assert.equal(charged("messages", snapshot).input, 3_700);
  assert.equal(charged("messages", seen(20, 900_000)).input, 50_000);
});

test("a final count overrides the estimate, for calls as for tokens", () => {
  const usage = { ...NO_USAGE, input: 700, output: 1, toolCalls: { web_search: 2 } };
  assert.deepEqual(charged("messages", { ...seen(20, 3_000), usage, final: true }), { searches: 2, input: 700 });
});

test("a client that disconnects pays all held calls of a tool whose calls the stream does not show, and none that a stream would have shown", () => {
  assert.equal(charged("chat", seen(0)).searches, 10);
  assert.equal(charged("messages", seen(0)).searches, 0);
  assert.equal(charged("responses", seen(0)).searches, 0);
  // A stream that the upstream or the gateway cut is charged as seen.
  for (const cause of ["brake", "draining", "upstream_invalid"]) {
    assert.equal(charged("chat", seen(0), { cause }).searches, 0);
  }
});

test("a hold is extended for the calls that were seen", () => {
  const { cost, usage } = costSoFar(TERMS, seen(20), { cause: "brake", pace: undefined, tier: undefined });
  assert.deepEqual({ ...usage.toolCalls }, { web_search: 20 });
  assert.ok(cost >= 20n * SEARCH_NANO);
});

/** The searches that a try is charged for when its client disconnects after this long. */
function searchesOf(waitedMs: number, streamed: boolean, protocol: Protocol): number {
  const route = { ...ROUTE, protocol };
  const model = { ...SEARCHING, routes: [route] };
  const facts = { status: undefined, bytesReceived: 0, sentToUpstream: true, refusedByUpstream: false };
  const times = { startedAtMs: 5_000, endedAtMs: 5_000 + waitedMs };
  const attempts = [
    { upstream: route.upstream, model: route.upstreamModel, outcome: "client_gone", ...facts, ...times },
  ];
  const run = { attempts, streamed, asksToThink: false } as unknown as Run;
  const terms = { ...TERMS, model };
  const tries = attemptFactsOf(run, terms as unknown as Permit, { observed: new Observed() });
  const gone = { delivered: false, complete: false, cause: "client_gone", route: undefined, measured: seen(0) };
  const { ask } = settlementOf(terms, { ...gone, attempts: tries, leftAllowance: nanoUsd(0n) });
  return JSON.parse(ask.leftUnpaid?.memo ?? "{}").tool_calls?.web_search ?? 0;
}

test("a client that disconnects before the answer pays all held calls after the first second", () => {
  assert.deepEqual(
    [1_000, 1_001, 4_000].map((ms) => searchesOf(ms, false, "responses")),
    [0, 10, 10],
  );
  // A stream in a protocol that shows calls would have started.
  assert.deepEqual([searchesOf(4_000, true, "responses"), searchesOf(4_000, true, "messages")], [0, 0]);
  assert.equal(searchesOf(4_000, true, "chat"), 10);
});
