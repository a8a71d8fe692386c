/**
 * A client that left before its upstream had answered, behind a try at another upstream that failed: whether the store lets
 * it off or charges it, the try that it left is in the costs once, as what became of it, and `ledger verify` finds all in
 * order.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { settlementOf } from "../../src/settle/charge.ts";
import type { ChargeTerms } from "../../src/settle/charge-terms.ts";
import type { Store } from "../../src/store/contract.ts";
import { auditAccount, auditToEnd } from "../../src/store/ledger-audit.ts";
import { openStore } from "../../src/store/open.ts";
import type { Group, Model, Route } from "../../src/values/catalog.ts";
import { nanoUsd } from "../../src/values/money.ts";
import type { RequestId } from "../../src/values/request-id.ts";
import { utcDay } from "../../src/values/time.ts";
import { makeAccount } from "../rig/gateway.ts";
import { CATALOG, MODEL } from "../sim/catalog.ts";

const [ROUTE] = MODEL.routes as [Route];
const half = { ...ROUTE.cost, input: 500_000n, output: 2_000_000n };
const EAST: Route = { ...ROUTE, upstream: "east", upstreamModel: "vendor/east", cost: half };
const WEST: Route = { ...ROUTE, upstream: "west", upstreamModel: "vendor/west", cost: half };
const TWO: Model = { ...MODEL, routes: [EAST, WEST] };
const INPUT = 10_000;
/** Of the try that the client left, and of the one that failed, at half of what the client pays. */
const COST = nanoUsd(5_000n);
const ALLOWANCE = nanoUsd(1_000_000n);

const dir = mkdtempSync(join(tmpdir(), "tollgate-left-"));
let store: Store;
before(async () => {
  store = await openStore({ kind: "embedded", dir });
});
after(async () => {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

function sentTo({ upstream, upstreamModel: model }: Route, outcome: string) {
  const facts = { status: undefined, bytesReceived: 0, sentToUpstream: true, refusedByUpstream: false };
  return { upstream, model, outcome, ...facts };
}

async function leave(allowance: bigint, failedAt: Route) {
  const { name, tag, keyId } = await makeAccount(store, { usd: "1" });
  const atMs = Date.now();
  const terms: ChargeTerms = {
    ...{ requestId: `left${tag}` as RequestId, tag, keyId, group: CATALOG.groups.get("money") as Group, model: TWO },
    terms: { inputTokens: INPUT, inputEstimate: INPUT, choices: 1, tier: undefined, tools: [], options: [] },
    ...{ hold: nanoUsd(900_000_000n), outputMost: 100, entitlement: undefined, unmetered: false },
    ...{ storeTimeMs: atMs, catalogVersion: "1" },
  };
  const { ask } = settlementOf(terms, {
    ...{ delivered: false, complete: false, route: undefined, cause: "client_gone", leftAllowance: nanoUsd(allowance) },
    measured: { usage: undefined, final: false, produced: { bytes: 0, tokens: 0, deltas: 0 }, silentMs: 0 },
    attempts: [sentTo(failedAt, "upstream_timeout"), sentTo(WEST, "client_gone")],
  });
  const answer = await store.settle(ask);
  assert.ok(answer.outcome === "settled");
  const { findings } = await auditToEnd(auditAccount(store, { name, tag }));
  assert.deepEqual(findings, []);
  const day = utcDay(atMs);
  const { items } = await store.pageUpstreamDays(tag, { since: day, until: day }, undefined);
  const [group] = await store.readDays(tag, day, day);
  return {
    charged: answer.charged,
    group: [group?.counts.requests, group?.cost, group?.absorbed],
    upstreams: Object.fromEntries(
      items.map(({ upstream, amount, counts, cost, absorbed }) => [
        upstream,
        [amount, counts.requests, counts.input, cost, absorbed],
      ]),
    ),
  };
}

test("within the allowance both tries are absorbed", async () => {
  assert.deepEqual(await leave(ALLOWANCE, EAST), {
    charged: 0n,
    group: [0, 2n * COST, 2n * COST],
    upstreams: { east: [0n, 1, INPUT, COST, COST], west: [0n, 1, INPUT, COST, COST] },
  });
  assert.deepEqual((await leave(ALLOWANCE, WEST)).upstreams, { west: [0n, 2, 2 * INPUT, 2n * COST, 2n * COST] });
});

test("beyond it the try that was left is charged, and the one that failed is absorbed still", async () => {
  const { charged, ...sums } = await leave(0n, EAST);
  assert.equal(charged, 10_000n);
  assert.deepEqual(sums, {
    group: [1, 2n * COST, COST],
    upstreams: { east: [0n, 1, INPUT, COST, COST], west: [charged, 1, INPUT, COST, 0n] },
  });
  assert.deepEqual((await leave(0n, WEST)).upstreams, { west: [charged, 2, 2 * INPUT, 2n * COST, COST] });
});
