/**
 * docs/failure-model.md rows A4, A7, B1, B3, B6 and B7: a short version of `npm run chaos`, which runs for minutes on
 * every form of the store. This one runs for some seconds on those whose failovers lose acknowledged writes. No charge
 * is missing, duplicate or wrong, and no balance is below zero.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Form, soak } from "./soak.ts";

/** Seeds whose first faults are failovers, a power cut and the kill of a gateway. */
const SMALL: readonly { form: Form; faults: number; seed: number }[] = [
  { form: "sentinel", faults: 5, seed: 53 },
  { form: "cluster", faults: 3, seed: 18 },
];
const SIZE = { requests: 200, seconds: 30, clients: 6, untilHoldsEnd: false };

for (const { form, faults, seed } of SMALL) {
  test(`${form}: after ${faults} faults nothing is missing, duplicate, wrong or below zero`, {
    timeout: 280_000,
  }, async (t) => {
    const { report, good, details } = await soak({ form, faults, seed, ...SIZE }, t.signal);
    t.diagnostic(JSON.stringify(report));
    assert.ok(good, [JSON.stringify(report), ...details].join("\n"));
  });
}
