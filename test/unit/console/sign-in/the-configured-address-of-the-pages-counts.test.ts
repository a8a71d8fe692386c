/** Passkeys are bound to a host, and a provider redirects to it: it must be the same however a page was opened. */
import assert from "node:assert/strict";
import test from "node:test";
import { siteOf } from "../../../../src/console/sign-in/site.ts";

const ASKED = { host: "10.0.0.7:8787", origin: "http://10.0.0.7:8787" };

test("the configured address takes precedence over the one at which the page was opened", () => {
  const site = siteOf(ASKED, "https://gate.example:8443");
  assert.deepEqual(site, { origin: "https://gate.example:8443", host: "gate.example" });
});

test("without a configured address it is that of the page, then that of the request", () => {
  const { host } = ASKED;
  assert.deepEqual(siteOf({ ...ASKED, origin: "https://page.example" }, undefined).origin, "https://page.example");
  assert.deepEqual(siteOf({ host }, undefined), { origin: "http://10.0.0.7:8787", host: "10.0.0.7" });
});
