/** A list whose answer was lost is loaded again by the same search; the history gets no second entry for it. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, openWindow } from "../../../../rig/browser.ts";
import { signIn as signInOperator } from "../operator/world.ts";
import { startOwnerGateway } from "./furnished-account.ts";
import { at, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

test("keys of an owner", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "cards"));
  await settled(page);
  await page.route("**/console/api/**", (route) => route.abort("connectionrefused"));
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByText("The gateway does not answer.").first().waitFor();
  await page.unroute("**/console/api/**");
  const entries = Number(await page.evaluate("history.length"));
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText(keyId).waitFor();
  // What the keys have spent was lost, too.
  await page.getByText("0.00 USD today").waitFor();
  assert.equal(await page.evaluate("history.length"), entries);
});

test("accounts of an operator", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page } = await openWindow(t);
  await page.goto(`${gateway.adminUrl}/console/`);
  await signInOperator(page, gateway.gateway.adminToken);
  await page.goto(`${gateway.adminUrl}/console/codes`);
  await settled(page);
  await page.route("**/admin/v1/**", (route) => route.abort("connectionrefused"));
  await page.getByRole("link", { name: "Accounts", exact: true }).click();
  await page.getByText("The gateway does not answer.").first().waitFor();
  await page.unroute("**/admin/v1/**");
  const entries = Number(await page.evaluate("history.length"));
  await page.getByRole("search").getByRole("button", { name: "Search" }).click();
  await page.getByRole("link", { name, exact: true }).waitFor();
  assert.equal(await page.evaluate("history.length"), entries);
});
