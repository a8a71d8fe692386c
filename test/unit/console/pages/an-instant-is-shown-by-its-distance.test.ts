/** How the console's pages show the distance of an instant from now. */
import assert from "node:assert/strict";
import process from "node:process";
import test from "node:test";

process.env.TZ = "Europe/Berlin";
// All that the pages' texts need of a browser.
const browser = globalThis as { document?: { documentElement: { lang: string } } };
browser.document ??= { documentElement: { lang: "" } };
Object.assign(globalThis, { localStorage: { getItem: () => "en" } });
// A computed path that the compiler does not follow: the pages are checked with a configuration of their own, for
// browsers.
const page: string = new URL("../../../../src/console/pages/parts/format.ts", import.meta.url).href;
const { fromNow } = (await import(page)) as { fromNow(iso: string, nowMs?: number): string };

const shown = (now: string, then: string) => fromNow(new Date(then).toISOString(), Date.parse(now));

test("below a day the remaining time is shown, rounded down to whole units", () => {
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-02T11:59:59.999Z"), "in 23 hours");
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-01T10:00:00.001Z"), "1 hour ago");
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-01T12:01:00Z"), "in 1 minute");
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-01T12:00:59.999Z"), "in 59 seconds");
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-01T12:00:00.400Z"), "now");
});

test("from a day on the calendar days of the reader are counted", () => {
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-03T11:59:59Z"), "in 2 days");
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-03T12:00:00Z"), "in 2 days");
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-02T12:00:00Z"), "tomorrow");
  // After midnight in Berlin, two hours before it in Greenwich.
  assert.equal(shown("2026-06-01T12:00:00Z", "2026-06-02T22:30:00Z"), "in 2 days");
  assert.equal(shown("2026-06-03T12:00:00Z", "2026-06-01T22:30:00Z"), "yesterday");
  assert.equal(shown("2026-06-03T12:00:00Z", "2026-06-01T21:30:00Z"), "2 days ago");
});

test("a day of 23 or 25 hours counts as a day", () => {
  assert.equal(shown("2026-03-29T11:00:00Z", "2026-03-30T12:00:00Z"), "tomorrow");
  assert.equal(shown("2026-10-24T12:00:00Z", "2026-10-31T13:00:00Z"), "in 7 days");
  assert.equal(shown("2026-10-31T13:00:00Z", "2026-10-24T12:00:00Z"), "7 days ago");
});
