/** The owner's pages name a card that paid by the id that `GET /v1/usage` shows, not by its account in the ledger. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { spend, startOwnerGateway } from "./furnished-account.ts";
import { admin, at, signIn } from "./signed-in.ts";

after(closeBrowser);

test("a request that a card paid names the card by its id", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key } = await gateway.account({ group: "cards" });
  await admin(gateway, "POST", `/accounts/${name}/gifts`, { card: "day", id: "gift" });
  await spend(gateway, key);
  const usage = await fetch(`${gateway.url}/v1/usage`, { headers: { authorization: `Bearer ${key}` } });
  const { entitlements } = (await usage.json()) as { readonly entitlements: readonly { readonly id: string }[] };
  const words = `paid by the time card ${entitlements[0]?.id}`;

  const { page } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "usage?by=requests"));
  const row = page.locator("main tbody tr").filter({ hasText: "paid by the time card" });
  assert.ok((await row.innerText()).includes(words), await row.innerText());
  await row.getByRole("link").first().click();
  await page.getByText(String(entitlements[0]?.id)).waitFor();
  assert.doesNotMatch(await page.locator("main").innerText(), /ent_/);
});
