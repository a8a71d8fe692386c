/** A site may have pages of its own at any path, so the console's pages are in front of it only if the operator says so. */
import assert from "node:assert/strict";
import test from "node:test";
import { LEAST, settingsOf } from "./least.ts";

test("with a site the console is served only if it is enabled, and without a site unless it is disabled", () => {
  const isServed = (text: string) => settingsOf(text + LEAST).console !== undefined;
  const site = 'site: "http://127.0.0.1:3000"\n';
  assert.deepEqual([isServed(""), isServed("console: {enabled: false}\n")], [true, false]);
  assert.deepEqual([isServed(site), isServed(`${site}console: {enabled: true}\n`)], [false, true]);
  assert.equal(isServed(`${site}console: {path: /keys}\n`), false, "a setting of the console does not enable it");
});
