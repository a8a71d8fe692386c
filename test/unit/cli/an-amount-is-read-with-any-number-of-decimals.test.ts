/** Sums of the commands are computed from the amounts in the gateway's answers, which have one to nine decimals. */
import assert from "node:assert/strict";
import test from "node:test";
import { readAmount } from "../../../src/cli/amounts.ts";

test("amounts are read to the nano-dollar, with their sign, and a missing one is 0", () => {
  const read = ["1.5", "1.50", "-0.25", "0.000000001", "12345678901234.123456789", undefined].map(readAmount);
  assert.deepEqual(read, [1_500_000_000n, 1_500_000_000n, -250_000_000n, 1n, 12_345_678_901_234_123_456_789n, 0n]);
  for (const text of ["", "1", "1.", ".5", "1.0000000001", "1e3", null]) {
    assert.throws(() => readAmount(text), /The gateway's answer has an invalid amount/, String(text));
  }
});
