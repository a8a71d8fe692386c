/** An empty search is another search than the one that is shown, not the same one again. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { startOwnerGateway } from "./furnished-account.ts";
import { at, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

test("keys of an owner", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "keys?search=nothing-has-this-name"));
  await settled(page);
  assert.equal(await page.getByText(keyId).count(), 0);
  const field = page.locator("main input").first();
  assert.equal(await field.inputValue(), "nothing-has-this-name");
  await field.fill("");
  const answered = page.waitForResponse(/\/keys\?/);
  await page.getByRole("button", { name: "Find" }).click();
  await (await answered).finished();
  await settled(page);
  assert.equal(await page.getByText(keyId).count(), 1);
});
