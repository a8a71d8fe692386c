/** Ledgers show charges with a minus and top-ups with a plus; what changes nothing has no sign. */
import assert from "node:assert/strict";
import test from "node:test";

// All that the pages' texts need of a browser. Another file of this process may have set it.
const browser = globalThis as { document?: { documentElement: { lang: string } } };
browser.document ??= { documentElement: { lang: "" } };
Object.assign(globalThis, { localStorage: { getItem: () => "en" } });
// A computed path that the compiler does not follow: the pages are checked with a configuration of their own, for
// browsers.
const page: string = new URL("../../../../src/console/pages/parts/format.ts", import.meta.url).href;
const { change, lackingDigits } = (await import(page)) as {
  change(text: string): string;
  lackingDigits(texts: readonly string[]): readonly number[];
};

test("an amount that changes a balance has a sign, and zero has none", () => {
  assert.match(change("1234.5"), /^\+1\s234\.50 /);
  assert.match(change("-0.000000001"), /^-0\.000000001 /);
  for (const nothing of ["0.00", "-0.00", "0"]) assert.match(change(nothing), /^0\.00 /);
});

test("amounts with signs have their points below each other", () => {
  assert.deepEqual(lackingDigits(["5", "-0.125", "0.00"].map(change)), [1, 0, 1]);
});
