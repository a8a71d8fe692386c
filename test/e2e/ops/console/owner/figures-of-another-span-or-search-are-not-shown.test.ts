/** While an owner's page waits for another span or search, it shows no figures and no rows of the one before. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { spend, startOwnerGateway } from "./furnished-account.ts";
import { ownerWindow, settledPage } from "./owner-pages.ts";

after(closeBrowser);

test("the sums of a span are gone while those of another one are waited for", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key } = await gateway.account();
  await spend(gateway, key);
  const { page } = await ownerWindow(t, gateway, name, "usage?days=1");
  await settledPage(page);
  assert.notEqual(await page.locator("main .figure").count(), 0);
  const held = Promise.withResolvers<void>();
  await page.route("**/usage?since=*", (route) => held.promise.then(() => route.continue()));
  const asked = page.waitForRequest("**/usage?since=*");
  await page.getByRole("link", { name: "7 days", exact: true }).click();
  await asked;
  assert.equal(await page.locator("main .figure").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Download CSV" }).count(), 0);
  held.resolve();
  await page.locator("main .figure").first().waitFor();
});

test("the keys of a search are gone while those of another one are waited for", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page } = await ownerWindow(t, gateway, name, "keys");
  await settledPage(page);
  assert.notEqual(await page.locator("main tbody tr").count(), 0);
  const held = Promise.withResolvers<void>();
  await page.route(/keys\?status=revoked/, (route) => held.promise.then(() => route.continue()));
  const asked = page.waitForRequest(/keys\?status=revoked/);
  await page.getByLabel("Status").selectOption("revoked");
  await asked;
  assert.equal(await page.locator("main tbody tr").count(), 0);
  held.resolve();
  await settledPage(page);
  await page.locator("main .empty").waitFor();
});
