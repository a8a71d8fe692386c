/** How the charts of the console's pages show dates and times. */
import assert from "node:assert/strict";
import process from "node:process";
import test from "node:test";

process.env.TZ = "Europe/Berlin";
// All that the pages' texts need of a browser. Another file of this process may have set it.
const browser = globalThis as { document?: { documentElement: { lang: string } } };
browser.document ??= { documentElement: { lang: "" } };
const { documentElement } = browser.document;
Object.assign(globalThis, { localStorage: { getItem: () => "en" } });
// A computed path that the compiler does not follow: the pages are checked with a configuration of their own, for
// browsers.
const page: string = new URL("../../../../src/console/pages/parts/format.ts", import.meta.url).href;
const { axisTime } = (await import(page)) as { axisTime(seconds: number, step: number): string };

function shown(language: string, stepS: number): string {
  documentElement.lang = language;
  // The space before AM and PM depends on the version of the language data.
  return axisTime(Date.parse("2026-06-01T20:05:30Z") / 1_000, stepS).replace(/\s/g, " ");
}

test("axes show dates, minutes or seconds in the language of the page, in the reader's time zone", (t) => {
  const { lang } = documentElement;
  t.after(() => {
    documentElement.lang = lang;
  });
  assert.equal(shown("en", 86_400), "6/1");
  assert.equal(shown("en", 60), "10:05 PM");
  assert.equal(shown("en", 15), "10:05:30 PM");
  assert.equal(shown("zh-CN", 7 * 86_400), "6/1");
  assert.equal(shown("zh-CN", 300), "22:05");
  assert.equal(shown("zh-CN", 1), "22:05:30");
});
