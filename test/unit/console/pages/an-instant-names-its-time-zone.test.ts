/** Instants are shown in the reader's time zone, with its name: days, budgets and files are in UTC. */
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
const { instant } = (await import(page)) as { instant(iso: string): string };

function shown(language: string, iso: string): string {
  documentElement.lang = language;
  // The space before AM and PM depends on the version of the language data.
  return instant(iso).replace(/\s/g, " ");
}

test("an instant has its time zone, in summer and in winter", (t) => {
  const { lang } = documentElement;
  t.after(() => {
    documentElement.lang = lang;
  });
  assert.equal(shown("en", "2026-06-01T22:05:30Z"), "Jun 2, 2026, 12:05 AM GMT+2");
  assert.equal(shown("en", "2026-12-01T22:05:30Z"), "Dec 1, 2026, 11:05 PM GMT+1");
  assert.equal(shown("zh-CN", "2026-06-01T22:05:30Z"), "2026年6月2日 00:05 GMT+2");
});
