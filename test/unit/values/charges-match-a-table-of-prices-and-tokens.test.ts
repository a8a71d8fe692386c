/** The cost of requests: each line has prices, tokens, a multiplier and the expected charge. */
import assert from "node:assert/strict";
import test from "node:test";
import { NANO_USD_MAX } from "../../../src/values/money.ts";
import { ceilingOf, charge, holdFor, MULTIPLIER_ONE, unitPricesFor } from "../../../src/values/price.ts";
import { plausibleCount, TOKEN_COUNT_MAX, totalInput } from "../../../src/values/tokens/usage.ts";
import { multiplierOf, priceOf, unitPrices, usageOf } from "./prices.ts";

// USD per million tokens                   | tokens                                | times    | charge in
// input  cached  write   write1h  output   | input   cached write  write1h output  |          | nano-dollars
const CHARGES = `
   1.25   0.125   1.5625  2.5      10       | 1000    0      0      0      500     | 1        | 6250000
   1.25   0.125   1.5625  2.5      10       | 0       0      0      0      0       | 1        | 0
   1.25   0.125   1.5625  2.5      10       | 1       0      0      0      0       | 1        | 1250
   1.25   0.125   1.5625  2.5      10       | 0       1000   0      0      0       | 1        | 125000
   1.25   0.125   1.5625  2.5      10       | 0       0      1000   0      0       | 1        | 1562500
   1.25   0.125   1.5625  2.5      10       | 0       0      0      1000   0       | 1        | 2500000
   1.25   0.125   1.5625  2.5      10       | 400     300    200    100    50      | 1        | 1600000
   1.25   0.125   1.5625  2.5      10       | 1000    0      0      0      500     | 0.8      | 5000000
   1.25   0.125   1.5625  2.5      10       | 1000    0      0      0      500     | 1.5      | 9375000
   1.25   0.125   1.5625  2.5      10       | 1000    0      0      0      500     | 0        | 0
   0.15   0.15    0.15    0.15     0.6      | 1       0      0      0      0       | 1        | 150
   0.15   0.15    0.15    0.15     0.6      | 0       0      0      0      1       | 1        | 600
   0      0       0       0        0        | 1000000 0      0      0      1000000 | 1        | 0
   0.0005 0.0005  0.0005  0.0005   0.0005   | 1       0      0      0      0       | 1        | 1
   0.0004 0.0004  0.0004  0.0004   0.0004   | 1       0      0      0      0       | 1        | 0
   0.0015 0.0015  0.0015  0.0015   0.0015   | 1       0      0      0      0       | 1        | 2
   0.0005 0.0005  0.0005  0.0005   0.0005   | 1       0      0      0      0       | 0.999999 | 0
   0.0005 0.0004  0       0        0.0003   | 1       1      0      0      1       | 1        | 1
   3      0.3     3.75    6        15       | 1000000 0      0      0      1000000 | 1        | 18000000000
   9000   9000    9000    9000     9000     | 1000000 0      0      0      0       | 1        | 9000000000000
`;

for (const line of CHARGES.trim().split("\n")) {
  const [prices, tokens, multiplier, expected] = line.split("|").map((cell) => cell.trim()) as [
    string,
    string,
    string,
    string,
  ];
  test(`charge: ${line.trim().replace(/\s+/g, " ")}`, () => {
    const price = priceOf(prices);
    const usage = usageOf(tokens);
    const { amount, snapshot } = charge(price, multiplierOf(multiplier), usage);
    assert.equal(amount, BigInt(expected));
    assert.deepEqual(snapshot.prices, price);
    assert.equal(snapshot.multiplier, multiplierOf(multiplier));
    const hold = holdFor(ceilingOf(price, multiplierOf(multiplier), totalInput(usage)), usage.output);
    assert.ok(hold >= amount, `the hold ${hold} covers the charge ${amount}`);
  });
}

test("charges are rounded half up, and holds up", () => {
  const price = priceOf("0.0004 0.0004 0.0004 0.0004 0.0004");
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("1 0 0 0 0")).amount, 0n);
  assert.equal(holdFor(ceilingOf(price, MULTIPLIER_ONE, 1), 0), 1n);
});

test("an upstream whose input includes cached tokens and one whose input does not cost the same", () => {
  const price = priceOf("1.25 0.125 1.5625 2.5 10");
  // Inclusive: 1,000 prompt tokens of which 800 were cached. Exclusive: 200 input tokens and 800 cache reads.
  const inclusive = usageOf(`${1000 - 800} 800 0 0 50`);
  const exclusive = usageOf("200 800 0 0 50");
  assert.equal(charge(price, MULTIPLIER_ONE, inclusive).amount, 850_000n);
  assert.equal(charge(price, MULTIPLIER_ONE, exclusive).amount, 850_000n);
  assert.equal(totalInput(exclusive), 1_000);
});

test("reasoning tokens are part of the output and not charged again", () => {
  const price = priceOf("1 1 1 1 10");
  const usage = usageOf("0 0 0 0 100");
  assert.equal(
    charge(price, MULTIPLIER_ONE, { ...usage, reasoning: 90 }).amount,
    charge(price, MULTIPLIER_ONE, usage).amount,
  );
});

test("tool calls are charged by the call, with the multiplier; a tool without a price is free", () => {
  const price = priceOf("1 1 1 1 10", { tools: new Map([["web_search", 10_000_000n]]) });
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("0 0 0 0 0", { web_search: 3, other: 9 })).amount, 30_000_000n);
  assert.equal(charge(price, multiplierOf("0.5"), usageOf("1 0 0 0 0", { web_search: 1 })).amount, 5_000_500n);
});

test("a price step applies from the first token above it, to all tokens including cached ones", () => {
  const long = unitPrices("2.5 0.25 3 5 15");
  const longer = unitPrices("5 0.5 6 10 30");
  const price = priceOf("1.25 0.125 1.5 2.5 10", {
    aboveTokens: [
      { tokens: 200_000, prices: long },
      { tokens: 400_000, prices: longer },
    ],
  });
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("200000 0 0 0 0")).amount, 250_000_000n);
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("200001 0 0 0 0")).amount, 500_002_500n);
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("1 200000 0 0 0")).amount, 50_002_500n);
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("400001 0 0 0 1")).amount, 2_000_035_000n);
  assert.equal(unitPricesFor(price, 400_000), long);
});

test("a tier replaces the prices and the steps, and a tier without a price is ignored", () => {
  const fast = unitPrices("6 0.6 7.5 12 50");
  const price = priceOf("1 1 1 1 1", {
    tiers: new Map([["fast", fast]]),
    aboveTokens: [{ tokens: 1, prices: unitPrices("9 9 9 9 9") }],
  });
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("10 0 0 0 0"), "fast").amount, 60_000n);
  assert.equal(unitPricesFor(price, 1, "unknown"), price);
  assert.equal(holdFor(ceilingOf(price, MULTIPLIER_ONE, 10, "fast"), 1), 10n * 12_000n + 50_000n);
});

test("a tier has separate steps for long input, and none of the standard ones", () => {
  const long = unitPrices("4 0.4 5 8 30");
  const price = priceOf("1 0.1 1.25 2 10", {
    tiers: new Map([["fast", { ...unitPrices("2 0.2 2.5 4 20"), aboveTokens: [{ tokens: 200_000, prices: long }] }]]),
    aboveTokens: [{ tokens: 100_000, prices: unitPrices("9 9 9 9 9") }],
  });
  const cost = (tokens: string) => charge(price, MULTIPLIER_ONE, usageOf(tokens), "fast").amount;
  assert.equal(cost("200000 0 0 0 1"), 400_020_000n);
  assert.equal(cost("200001 0 0 0 1"), 800_034_000n);
  assert.equal(cost("1 200000 0 0 0"), 80_004_000n);
  // The hold covers the most expensive step within reach: here for a one-hour cache write, below and above the step.
  assert.equal(holdFor(ceilingOf(price, MULTIPLIER_ONE, 200_000, "fast"), 1), 800_020_000n);
  assert.equal(holdFor(ceilingOf(price, MULTIPLIER_ONE, 200_001, "fast"), 1), 1_600_038_000n);
  assert.equal(charge(price, MULTIPLIER_ONE, usageOf("100001 0 0 0 0"), "unknown").amount, 900_009_000n);
});

test("for input that was read in several passes the longest pass determines the price step", () => {
  const price = priceOf("1 0.1 1.25 2 10", {
    aboveTokens: [{ tokens: 200_000, prices: unitPrices("2 0.2 2.5 4 20") }],
  });
  const usage = usageOf("203000 0 0 0 4500");
  assert.equal(charge(price, MULTIPLIER_ONE, { ...usage, longestInput: 180_000 }).amount, 248_000_000n);
  assert.equal(charge(price, MULTIPLIER_ONE, { ...usage, longestInput: 200_001 }).amount, 496_000_000n);
  assert.equal(charge(price, MULTIPLIER_ONE, usage).amount, 496_000_000n);
});

test("no count leads to a charge that a store refuses", () => {
  const price = priceOf("9000 9000 9000 9000 9000", { tools: new Map([["web_search", 9_000_000_000_000_000n]]) });
  const all = usageOf(`${"1000000000 ".repeat(5)}`, { web_search: 1_000_000_000 });
  assert.equal(charge(price, multiplierOf("1000"), all).amount, NANO_USD_MAX);
});

test("only whole counts up to the maximum are accepted from an upstream", () => {
  for (const good of [0, 1, TOKEN_COUNT_MAX]) assert.equal(plausibleCount(good), good);
  for (const bad of [-1, 1.5, NaN, Infinity, 1e30, TOKEN_COUNT_MAX + 1, "5", null, undefined, {}, 5n, true]) {
    assert.equal(plausibleCount(bad), undefined, String(bad));
  }
});
