/** A front that caches may keep a 404 or 414 that does not forbid it: a file that another gateway has would be missing. */
import assert from "node:assert/strict";
import test from "node:test";
import { startOwners } from "../sign-in/owners.ts";

const REFUSED = [
  [401, "GET", "/session"],
  [404, "GET", "/nowhere"],
  [404, "GET", "/console/assets/another-version/owner/main.ts"],
  [400, "GET", "/keys/%"],
  [414, "POST", `/keys/${"a".repeat(300)}/revoke`],
] as const;

test("no refusal is kept by caches", async (t) => {
  const browser = (await startOwners(t)).browser();
  for (const [expected, method, path] of REFUSED) {
    const { status, headers } = await browser.ask(method, path);
    assert.deepEqual([status, headers["cache-control"]], [expected, "no-store"], path);
  }
});
