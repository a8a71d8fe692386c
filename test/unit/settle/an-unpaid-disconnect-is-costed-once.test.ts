/**
 * A client that disconnects before its upstream has answered, after a failed try at another upstream: whether the store absorbs
 * or charges it, the abandoned try is in the costs once, with its final outcome, and `ledger verify` finds no fault.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { attemptFactsOf } from "../../../src/request/disconnect.ts";
import type { Run } from "../../../src/request/run.ts";
import { settlementOf } from "../../../src/settle/charge.ts";
import type { AttemptFacts, Ending } from "../../../src/settle/meter.ts";
import { Observed, REPLIES_TO_TRUST } from "../../../src/settle/observed.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Store } from "../../../src/store/contract.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { openStore } from "../../../src/store/open.ts";
import type { Group, Model, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { utcDay } from "../../../src/values/time.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import { makeAccount, type TestAccount } from "../../rig/gateway.ts";

const [ROUTE] = MODEL.routes as [Route];
const half = { ...ROUTE.cost, input: 500_000n, output: 2_000_000n };
const EAST: Route = { ...ROUTE, upstream: "east", upstreamModel: "vendor/east", cost: half };
const WEST: Route = { ...ROUTE, upstream: "west", upstreamModel: "vendor/west", cost: half };
const TWO: Model = { ...MODEL, routes: [EAST, WEST] };
const INPUT = 10_000;
/** The cost of the try that the client left, and of the failed one, at half of what the client pays. */
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

const NOTHING: Ending = {
  ...{ delivered: false, complete: false, route: undefined, cause: "client_gone" },
  measured: { usage: undefined, final: false, produced: { bytes: 0, tokens: 0, deltas: 0 }, silentMs: 0 },
};

function termsOf({ tag, keyId }: Pick<TestAccount, "tag" | "keyId">, atMs: number): ChargeTerms {
  return {
    ...{ requestId: `left${tag}` as RequestId, tag, keyId, group: CATALOG.groups.get("money") as Group, model: TWO },
    tokensTaken: INPUT,
    terms: { inputTokens: INPUT, inputEstimate: INPUT, choices: 1, tier: undefined, tools: [], options: [] },
    ...{ hold: nanoUsd(900_000_000n), outputMost: 100, entitlement: undefined, unmetered: false },
    ...{ storeTimeMs: atMs, catalogVersion: "1" },
  };
}

async function leave(allowance: bigint, failedAt: Route, last = sentTo(WEST, "client_gone")) {
  const account = await makeAccount(store, { usd: "1" });
  const { name, tag } = account;
  const atMs = Date.now();
  const terms = termsOf(account, atMs);
  const { ask } = settlementOf(terms, {
    ...{ ...NOTHING, leftAllowance: nanoUsd(allowance) },
    attempts: [sentTo(failedAt, "upstream_timeout"), last],
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

test("beyond the allowance the abandoned try is charged, and the failed one is still absorbed", async () => {
  const { charged, ...sums } = await leave(0n, EAST);
  assert.equal(charged, 10_000n);
  assert.deepEqual(sums, {
    group: [1, 2n * COST, COST],
    upstreams: { east: [0n, 1, INPUT, COST, COST], west: [charged, 1, INPUT, COST, 0n] },
  });
  assert.deepEqual((await leave(0n, WEST)).upstreams, { west: [charged, 2, 2 * INPUT, 2n * COST, COST] });
});

test("an answer too large to be buffered is treated as caused by the client as well", async () => {
  const askedFor = { ...sentTo(WEST, "upstream_invalid"), askedFor: true };
  assert.deepEqual(await leave(ALLOWANCE, EAST, askedFor), await leave(ALLOWANCE, EAST));
  assert.deepEqual(await leave(0n, EAST, askedFor), await leave(0n, EAST));
  assert.equal((await leave(0n, EAST, askedFor)).charged, 10_000n);
});

test("an earlier try that failed with the same cause is not attributed to the client", () => {
  const terms = termsOf({ tag: "left" as AccountTag, keyId: "key" }, 0);
  const askedFor = { ...sentTo(WEST, "upstream_invalid"), askedFor: true };
  const attempts = [sentTo(EAST, "upstream_invalid"), askedFor];
  const { ask } = settlementOf(terms, { ...NOTHING, attempts, leftAllowance: nanoUsd(0n) });
  const notes = JSON.parse(ask.leftUnpaid?.memo ?? "{}").attempts as { readonly paid_by: string }[];
  assert.deepEqual(
    notes.map(({ paid_by }) => paid_by),
    ["absorbed", "client"],
  );
});

/** The output tokens that a try is charged for when its client disconnects after this long. */
function outputCharged(waitedMs: number, { streamed, shows }: { streamed: boolean; shows: boolean }): number {
  const observed = new Observed();
  const usage = { ...NO_USAGE, output: 200 };
  const reply = { usage, produced: { bytes: 800, tokens: 200, deltas: 200 }, silentMs: 0 };
  if (shows) for (let i = 0; i < REPLIES_TO_TRUST; i++) observed.note(WEST, reply);
  const terms = { ...termsOf({ tag: "left" as AccountTag, keyId: "key" }, 0), outputMost: 1_000 };
  const attempts = [{ ...sentTo(WEST, "client_gone"), startedAtMs: 5_000, endedAtMs: 5_000 + waitedMs }];
  const run = { attempts, streamed, asksToThink: false } as unknown as Run;
  const tries = attemptFactsOf(run, terms as unknown as Permit, { observed });
  const { ask } = settlementOf(terms, { ...NOTHING, attempts: tries, leftAllowance: nanoUsd(0n) });
  return Math.floor(Number((ask.leftUnpaid?.amount ?? 0n) - 10_000n) / 5);
}

test("output that may have been written while a client waited is charged as well, within the limit that was sent", () => {
  const unseen = { streamed: true, shows: false };
  const shown = { streamed: true, shows: true };
  const whole = { streamed: false, shows: true };
  // 150 tokens a second, without the first second.
  assert.deepEqual(
    [1_000, 3_000, 60_000].map((ms) => outputCharged(ms, unseen)),
    [0, 300, 1_000],
  );
  assert.deepEqual(
    [1_000, 3_000, 60_000].map((ms) => outputCharged(ms, shown)),
    [0, 0, 0],
  );
  assert.deepEqual(
    [1_000, 3_000, 60_000].map((ms) => outputCharged(ms, whole)),
    [0, 300, 1_000],
  );
});

/** The output tokens that are absorbed for a try that ended for another reason after this long. */
function outputAbsorbed(outcome: string, waitedMs: number, streamed: boolean, facts: Partial<AttemptFacts> = {}) {
  const observed = new Observed();
  const usage = { ...NO_USAGE, output: 200 };
  const reply = { usage, produced: { bytes: 800, tokens: 200, deltas: 200 }, silentMs: 0 };
  for (let i = 0; i < REPLIES_TO_TRUST; i++) observed.note(WEST, reply);
  const terms = { ...termsOf({ tag: "left" as AccountTag, keyId: "key" }, 0), outputMost: 1_000 };
  const attempts = [{ ...sentTo(WEST, outcome), startedAtMs: 5_000, endedAtMs: 5_000 + waitedMs, ...facts }];
  const run = { attempts, streamed, asksToThink: false } as unknown as Run;
  const tries = attemptFactsOf(run, terms as unknown as Permit, { observed });
  const { ask } = settlementOf(terms, { ...NOTHING, cause: outcome, attempts: tries });
  assert.equal(ask.leftUnpaid, undefined);
  return ask.attempts?.map(({ memo }) => JSON.parse(memo).output);
}

test("output that may have been written until a try timed out or broke off is absorbed as well, within the limit that was sent", () => {
  for (const outcome of ["upstream_timeout", "upstream_unavailable", "upstream_invalid"]) {
    assert.deepEqual(
      [1_000, 3_000, 60_000].map((ms) => outputAbsorbed(outcome, ms, false)),
      [[0], [300], [1_000]],
      outcome,
    );
    // A stream of a model that hides nothing would have shown it.
    assert.deepEqual(outputAbsorbed(outcome, 60_000, true), [0]);
  }
});

test("no hidden output is estimated for a try that was refused, not sent, or counted", () => {
  const outcome = "upstream_unavailable";
  assert.equal(outputAbsorbed(outcome, 60_000, false, { refusedByUpstream: true }), undefined);
  assert.equal(outputAbsorbed(outcome, 60_000, false, { sentToUpstream: false }), undefined);
  const usage = { ...NO_USAGE, input: 10, output: 7 };
  assert.deepEqual(outputAbsorbed(outcome, 60_000, false, { usage, refusedByUpstream: true }), [7]);
  assert.deepEqual(outputAbsorbed(outcome, 60_000, false, { usage }), [7]);
});

test("a stream that failed before its first output because of the client's request is treated as a disconnect", () => {
  const usage = { ...NO_USAGE, input: INPUT, output: 50 };
  const produced = { bytes: 0, tokens: 0, deltas: 0 };
  const ending: Ending = {
    ...{ delivered: false, complete: false, route: WEST, cause: "upstream_invalid", leftAllowance: ALLOWANCE },
    measured: { usage, final: true, produced, silentMs: 0 },
    attempts: [sentTo(WEST, "ok")],
  };
  const terms = termsOf({ tag: "TAG" as AccountTag, keyId: "key" }, 0);
  const { leftUnpaid, tokensUsed } = settlementOf(terms, { ...ending, askedFor: true }).ask;
  assert.deepEqual([leftUnpaid?.allowance, tokensUsed], [ALLOWANCE, INPUT + 50]);
  assert.ok((leftUnpaid?.amount ?? 0n) > 0n);
  const { ask } = settlementOf(terms, { ...ending, askedFor: false });
  assert.deepEqual([ask.leftUnpaid, ask.tokensUsed], [undefined, 0], "the client did not cause the cost");
});
