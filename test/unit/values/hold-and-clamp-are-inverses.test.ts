/** ARCHITECTURE.md promise 1: the affordable output is the largest whose hold the funds cover. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { NANO_USD_MAX, nanoUsd } from "../../../src/values/money.ts";
import {
  affordableOutput,
  ceilingOf,
  charge,
  holdFor,
  MULTIPLIER_ONE,
  type Multiplier,
  type Price,
  type UnitPrices,
} from "../../../src/values/price.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { priceOf } from "./prices.ts";

/** Up to 1,000 dollars per million tokens, often small and odd prices. */
const unitPrice = fc.oneof(fc.bigInt(0n, 5n), fc.bigInt(0n, 2_000_000n), fc.bigInt(0n, 1_000_000_000_000n));
const unit: fc.Arbitrary<UnitPrices> = fc.record({
  input: unitPrice,
  cachedInput: unitPrice,
  cacheWrite: unitPrice,
  cacheWrite1h: unitPrice,
  output: unitPrice,
});
const steps = fc
  .uniqueArray(fc.tuple(fc.nat(2_000_000), unit), { selector: (step) => step[0], maxLength: 2 })
  .map((some) => some.sort((a, b) => a[0] - b[0]).map(([tokens, prices]) => ({ tokens, prices })));
const price: fc.Arbitrary<Price> = fc
  .tuple(unit, steps, fc.option(unit), steps)
  .map(([standard, aboveTokens, fast, aboveTokensFast]) => ({
    ...standard,
    tiers: fast ? new Map([["fast", { ...fast, aboveTokens: aboveTokensFast }]]) : new Map(),
    aboveTokens,
    tools: new Map(),
  }));
const multiplier = fc.oneof(fc.constant(1_000_000n), fc.bigInt(0n, 3_000_000n)).map((m) => m as Multiplier);
const input = fc.oneof(fc.nat(10), fc.nat(2_000_000));
const funds = fc
  .oneof(fc.bigInt(0n, 10_000n), fc.bigInt(0n, 10_000_000_000n), fc.bigInt(0n, NANO_USD_MAX))
  .map(nanoUsd);
const tier = fc.constantFrom(undefined, "fast", "unknown");

test("property: hold(count) <= funds < hold(count + 1)", () => {
  fc.assert(
    fc.property(price, multiplier, input, funds, tier, (p, m, inputTokens, f, t) => {
      const ceiling = ceilingOf(p, m, inputTokens, t);
      const hold = (output: number) => holdFor(ceiling, output);
      const count = affordableOutput(ceiling, f);
      assert.ok(Number.isSafeInteger(count) && count >= 0);
      if (count > 0) assert.ok(hold(count) <= f, `hold(${count}) = ${hold(count)} > ${f}`);
      if (count < Number.MAX_SAFE_INTEGER)
        assert.ok(hold(count + 1) > f, `hold(${count + 1}) = ${hold(count + 1)} <= ${f}`);
    }),
    { numRuns: 5_000, seed: 26 },
  );
});

test("output that costs nothing is paid by funds for exactly the input, and by none if that costs nothing either", () => {
  const afford = (price: string, inputTokens: number, amount: bigint) =>
    affordableOutput(ceilingOf(priceOf(price), MULTIPLIER_ONE, inputTokens), nanoUsd(amount));
  assert.equal(afford("0 0 0 0 0", 100, 0n), Number.MAX_SAFE_INTEGER);
  assert.equal(afford("1 1 1 1 0", 1, 1_000n), Number.MAX_SAFE_INTEGER);
  assert.equal(afford("1 1 1 1 0", 1, 999n), 0);
  assert.equal(afford("1 1 1 1 1", 1, 1_000n), 0);
});

test("property: no split of the input into kinds, and no smaller usage, costs more than the hold", () => {
  const share = fc.array(fc.nat(1_000), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(
      price,
      multiplier,
      input,
      fc.nat(200_000),
      share,
      fc.nat(100),
      tier,
      (p, m, total, output, shares, used, t) => {
        const spent = Math.floor((total * used) / 100);
        const sum = shares.reduce((a, b) => a + b, 0) || 1;
        const [a, b, c] = shares.map((s) => Math.floor((spent * s) / sum)) as [number, number, number];
        const usage = { ...NO_USAGE, input: a, cachedInput: b, cacheWrite: c, cacheWrite1h: spent - a - b - c, output };
        assert.ok(charge(p, m, usage, t).amount <= holdFor(ceilingOf(p, m, total, t), output));
      },
    ),
    { numRuns: 5_000, seed: 26 },
  );
});

test("funds for nothing, for exactly the input, and for one more token", () => {
  const p = priceOf("1 0.1 1.25 2 10");
  const afford = (amount: bigint) => affordableOutput(ceilingOf(p, MULTIPLIER_ONE, 100), nanoUsd(amount));
  // The most expensive input is the one-hour write: 100 x 2,000 nano-dollars; one output token is 10,000.
  assert.equal(afford(0n), 0);
  assert.equal(afford(199_999n), 0);
  assert.equal(afford(200_000n), 0);
  assert.equal(afford(209_999n), 0);
  assert.equal(afford(210_000n), 1);
  assert.equal(
    affordableOutput(ceilingOf(priceOf("1 1 1 1 0"), MULTIPLIER_ONE, 1), nanoUsd(1_001n)),
    Number.MAX_SAFE_INTEGER,
  );
});
