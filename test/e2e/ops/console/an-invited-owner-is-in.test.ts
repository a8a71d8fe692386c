/** A sign-in link in a real browser: it works once, the page names the account, and signing out ends the session. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, openWindow } from "../../../rig/browser.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";

after(closeBrowser);

test("an owner signs in by a link, once, and signs out", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const { name } = await gateway.account({ usd: "12.5" });
  const response = await fetch(`${gateway.adminUrl}/admin/v1/accounts/${name}/invitations`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.gateway.adminToken}` },
  });
  assert.equal(response.status, 201);
  const { link } = (await response.json()) as { readonly link: string };
  const { page, context, complaints } = await openWindow(t);
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("12.50 USD").first().waitFor();
  assert.equal(new URL(page.url()).hash, "");
  await page.reload();
  await page.getByText("12.50 USD").first().waitFor();
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie?.httpOnly, cookie?.secure, cookie?.sameSite], [true, true, "Lax"]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are not signed in.").waitFor();
  await page.goto(link);
  await page.reload();
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This sign-in link is not valid").waitFor();
  assert.deepEqual(complaints, []);
});
