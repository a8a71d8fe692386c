/** What the store adds to a running stream's hold is what it is charged and shown by from then on (src/request/settlement.ts). */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { StreamBill } from "../../../src/request/settlement.ts";
import { type NanoUsd, nanoUsd } from "../../../src/values/money.ts";
import { MODEL } from "../../endurance/simulation/catalog.ts";

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

test("it is the permit's, and the gauge's", () => {
  const { run, shown, bill } = running(false);
  bill.extended("extended", nanoUsd(200n));
  assert.deepEqual([run.permit?.hold, shown], [200n, [200n]]);
});

test("but where the charge is made already", () => {
  const { run, shown, bill } = running(true);
  bill.extended("extended", nanoUsd(200n));
  assert.deepEqual([run.permit?.hold, shown], [100n, []]);
});
