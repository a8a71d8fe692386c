/** Amounts are sorted by value, to the last nano-dollar, with however few digits they are written. */
import assert from "node:assert/strict";
import test from "node:test";

// A computed path that the compiler does not follow: the pages are checked with a configuration of their own, for
// browsers.
const page: string = new URL("../../../../src/console/pages/owner/usage/spans.ts", import.meta.url).href;
const { nanoOf } = (await import(page)) as { nanoOf(usd: string): bigint };

test("amounts are read as whole numbers of billionths", () => {
  const ascending = [
    "0.00",
    "0.000000001",
    "0.01",
    "0.999999999",
    "1.00",
    "1.50",
    "9.10",
    "10.00",
    "123456789.123456789",
  ];
  const nanos = ascending.map(nanoOf);
  assert.deepEqual(
    nanos.toSorted((a, b) => (a < b ? -1 : 1)),
    nanos,
  );
  assert.deepEqual([nanoOf("1.5"), nanoOf("0.000000001")], [1_500_000_000n, 1n]);
});
