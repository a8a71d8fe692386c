/** docs/failure-model.md row 38: an amount is digits, a point and digits; everything else is refused. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { divideHalfUp, divideUp, formatUsd, NANO_USD_MAX, parseNano, parseUsd } from "../../../src/values/money.ts";

test("row 38: malformed amounts of dollars are refused", () => {
  const bad = [
    "-5",
    "1e3",
    "NaN",
    "Infinity",
    "0x10",
    " 12 ",
    "12 ",
    "",
    ".",
    ".5",
    "5.",
    "+5",
    "01",
    "00",
    "1_000",
    "1,000",
    "--1",
    "-",
  ];
  bad.push(
    "12abc",
    "1.0000000001",
    "99999999999999999999",
    "9007199254740993",
    "9000000.000000001",
    "１",
    "1\n",
    "\u00a01",
  );
  for (const text of bad) assert.equal(parseUsd(text), undefined, JSON.stringify(text));
  for (const text of bad.filter((t) => t !== "-5"))
    assert.equal(parseUsd(text, { signed: true }), undefined, JSON.stringify(text));
});

test("row 38: malformed amounts of nano-dollars are refused", () => {
  const bad = ["-5", "1.5", "1e3", "NaN", "0x10", " 12 ", "", "+1", "01", "12abc", "-0", "1\n"];
  bad.push("99999999999999999999", "9007199254740993", (NANO_USD_MAX + 1n).toString());
  for (const text of bad) assert.equal(parseNano(text), undefined, JSON.stringify(text));
  assert.equal(parseNano("0"), 0n);
  assert.equal(parseNano(NANO_USD_MAX.toString()), NANO_USD_MAX);
});

test("amounts are read and displayed exactly", () => {
  const table: [string, bigint, string][] = [
    ["0", 0n, "0.00"],
    ["0.000000001", 1n, "0.000000001"],
    ["1.5", 1_500_000_000n, "1.50"],
    ["10", 10_000_000_000n, "10.00"],
    ["0.150", 150_000_000n, "0.15"],
    ["9000000", NANO_USD_MAX, "9000000.00"],
    ["-3", -3_000_000_000n, "-3.00"],
    ["-0.000000001", -1n, "-0.000000001"],
    ["-0", 0n, "0.00"],
  ];
  for (const [text, nano, shown] of table) {
    assert.equal(parseUsd(text, { signed: true }), nano, text);
    assert.equal(formatUsd(nano), shown, text);
  }
});

test("the largest amount is exact as a double, so that the store's scripts can compare it", () => {
  assert.ok(NANO_USD_MAX < BigInt(Number.MAX_SAFE_INTEGER));
});

test("property: a displayed amount is read back as the same amount", () => {
  fc.assert(
    fc.property(fc.bigInt(-NANO_USD_MAX, NANO_USD_MAX), (amount) => {
      const shown = formatUsd(amount);
      assert.match(shown, /^-?(0|[1-9][0-9]*)\.[0-9]{2,9}$/);
      assert.equal(parseUsd(shown, { signed: true }), amount);
      if (amount >= 0n) assert.equal(parseNano(amount.toString()), amount);
    }),
    { numRuns: 2_000, seed: 26 },
  );
});

test("charges are rounded half up, and holds up", () => {
  assert.deepEqual(
    [0n, 4n, 5n, 9n, 14n, 15n].map((n) => divideHalfUp(n, 10n)),
    [0n, 0n, 1n, 1n, 1n, 2n],
  );
  assert.deepEqual(
    [0n, 1n, 9n, 10n, 11n].map((n) => divideUp(n, 10n)),
    [0n, 1n, 1n, 1n, 2n],
  );
  assert.deepEqual(
    [1n, 2n].map((n) => divideHalfUp(n, 3n)),
    [0n, 1n],
    "an odd divisor has no exact half",
  );
});
