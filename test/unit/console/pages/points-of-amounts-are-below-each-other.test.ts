/** Amounts in a column get room for the digits that they lack, so that their points are below each other. */
import assert from "node:assert/strict";
import test from "node:test";

// All that the pages' texts need of a browser. Another file of this process may have set it.
const browser = globalThis as { document?: { documentElement: { lang: string } } };
browser.document ??= { documentElement: { lang: "" } };
Object.assign(globalThis, { localStorage: { getItem: () => "en" } });
// A computed path that the compiler does not follow: the pages are checked with a configuration of their own, for
// browsers.
const page: string = new URL("../../../../src/console/pages/parts/format.ts", import.meta.url).href;
const { lackingDigits, usd } = (await import(page)) as {
  lackingDigits(texts: readonly string[]): readonly number[];
  usd(text: string): string;
};

test("each amount gets what it lacks to the longest one", () => {
  const amounts = ["0.00026", "123456.168091", "-2.5", "10", "0.000000001"].map(usd);
  assert.deepEqual(lackingDigits(amounts), [4, 3, 7, 7, 0]);
});

test("amounts of the same length, counts and other texts get nothing", () => {
  assert.deepEqual(lackingDigits(["0.50 USD", "1 250.00 USD"]), [0, 0]);
  assert.deepEqual(lackingDigits(["2,001", "None", "", "3 of 200", "0.125 USD"]), [0, 0, 0, 0, 0]);
  assert.deepEqual(lackingDigits(["0.00 美元", "0.125 美元"]), [1, 0]);
  assert.deepEqual(lackingDigits([]), []);
});
