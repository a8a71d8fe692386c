/** The page of an account that does not exist has its name as a heading and one refusal, not a second one for its ledger. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { assertUsable, openOperator, settled } from "./world.ts";

after(closeBrowser);

test("an account that does not exist is reported once, below its name", async (t) => {
  const { open, page, complaints } = await openOperator(t);
  await open("accounts/nobody");
  await page.getByRole("alert").first().waitFor();
  assert.equal(await page.getByRole("heading", { level: 1, name: "nobody", exact: true }).count(), 1);
  await settled(page);
  assert.equal(await page.getByRole("alert").count(), 1);
  assert.equal(await page.getByRole("heading", { name: "Ledger", exact: true }).count(), 0);
  await assertUsable(page, "unknown-account");
  assert.deepEqual(complaints, []);
});
