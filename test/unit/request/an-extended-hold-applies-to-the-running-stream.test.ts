/**
 * Once the store has extended a running stream's hold, the stream is charged and shown with the new hold
 * (src/request/settlement.ts).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { measure } from "../../../src/admit/terms.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { StreamBill } from "../../../src/request/settlement.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import { type NanoUsd, nanoUsd } from "../../../src/values/money.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";
import { FakeClock } from "../dispatch/rig.ts";

function running(settled: boolean) {
  const shown: NanoUsd[] = [];
  const record = { extended: () => {}, held: (hold: NanoUsd) => void shown.push(hold) };
  const permit = { hold: nanoUsd(100n), growth: undefined } as unknown as Permit;
  const run = { permit, record, settled } as unknown as Run;
  const parts = { observed: { paceOf: () => ({ thinks: "no" }) } } as unknown as PipelineParts;
  const [route] = MODEL.routes;
  assert.ok(route);
  return { run, shown, bill: new StreamBill(run, permit, { route, attempts: [] }, parts) };
}

test("the permit and the gauge have the new hold", () => {
  const { run, shown, bill } = running(false);
  bill.extended("extended", nanoUsd(200n));
  assert.deepEqual([run.permit?.hold, shown], [200n, [200n]]);
});

test("an extension after the charge changes nothing", () => {
  const { run, shown, bill } = running(true);
  bill.extended("extended", nanoUsd(200n));
  assert.deepEqual([run.permit?.hold, shown], [100n, []]);
});

const FACTS: Envelope = {
  ...{
    protocol: "chat",
    model: MODEL.name,
    stream: true,
    limit: undefined,
    choices: 1,
    bodyBytes: 100,
    textBytes: 100,
    textTokens: 0,
  },
  ...{ media: [], compacts: false, serviceTier: undefined, tierParam: undefined, hostedTools: [], demandedTools: [] },
  ...{ hasOwnTools: true, options: [], thinkingBudget: 0, budgetParam: undefined, includeUsage: false },
};

test("a checkpoint after the extension may charge up to the new hold", () => {
  const quote = measure(FACTS, MODEL, CATALOG);
  assert.ok(!isRefusal(quote));
  const { terms } = quote;
  const permit = {
    ...{ requestId: "r1", tag: "T", keyId: "key_1", group: CATALOG.groups.get("money"), model: MODEL, terms },
    ...{ tokensTaken: terms.inputTokens, hold: nanoUsd(1_000n), outputMost: 4_096, entitlement: undefined },
    ...{ unmetered: false, storeTimeMs: 0, catalogVersion: "1", growth: undefined },
  } as unknown as Permit;
  const noted: SettleAsk[] = [];
  const clock = new FakeClock();
  const parts = {
    clock,
    observed: { paceOf: () => ({ thinks: "no", hiddenPerS: 0, visibleFactor: 1 }) },
    journal: { checkpoint: (ask: SettleAsk) => void noted.push(ask) },
  } as unknown as PipelineParts;
  const run = { permit, record: { extended() {}, held() {} }, settled: false } as unknown as Run;
  const [route] = MODEL.routes;
  assert.ok(route);
  const bill = new StreamBill(run, permit, { route, attempts: [] }, parts);
  const seen = {
    usage: undefined,
    final: false,
    produced: { bytes: 8_000, tokens: 2_000, deltas: 2_000 },
    silentMs: 0,
  };
  bill.checkpoint(seen);
  bill.extended("extended", nanoUsd(1_000_000_000n));
  clock.advance(1_000);
  bill.checkpoint(seen);
  assert.equal(noted[0]?.amount, 1_000n, "no more than was held");
  assert.ok((noted[1]?.amount ?? 0n) > 1_000n, `${noted[1]?.amount}`);
});
