/** Pages that ask again every few seconds do not give up an answer that takes longer, or they would never show one. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

test("upstreams, the store and a ledger that is followed are shown although each answer takes longer than the pause between two", async (t) => {
  const { page, open, admin } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await page.clock.install();
  for (const [path, asked, shown] of [
    ["upstreams", /\/v1\/upstreams$/, "tbody tr"],
    ["store", /\/v1\/store$/, ".figure .badge"],
    ["records/ledger?account=alice", /\/alice\/ledger\?/, "main .empty"],
  ] as const) {
    const givenUp: string[] = [];
    page.on("requestfailed", (request) => asked.test(request.url()) && givenUp.push(request.url()));
    await open(path);
    await page.locator(shown).first().waitFor();
    const held = Promise.withResolvers<void>();
    const again = page.waitForRequest(asked);
    await page.route(asked, (route) => held.promise.then(() => route.continue()));
    if (path.startsWith("records")) await page.getByLabel("Follow").check();
    await page.clock.runFor(5_000);
    await again;
    await page.clock.runFor(20_000);
    const answered = page.waitForResponse(asked);
    held.resolve();
    await (await answered).finished();
    await page.unroute(asked);
    assert.deepEqual(givenUp, []);
  }
});
