/**
 * Sign-in of the operator in a real browser: a wrong token, the right one, a session that ends, the back button, two
 * tabs.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, openWindow } from "../../../../rig/browser.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { assertUsable, openOperator, settled, signIn } from "./world.ts";

after(closeBrowser);

test("a wrong token is refused with advice, the right one signs in, and signing out ends the session", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { page, context, complaints } = await openWindow(t);
  await page.goto(`${here.adminUrl}/`);
  assert.equal(page.url(), `${here.adminUrl}/console/`, "the root redirects to the console");
  await page.getByLabel("Admin token").waitFor();
  assert.equal(await page.evaluate("document.activeElement.type"), "password", "the field has the focus");
  await page.keyboard.type("not-the-admin-token");
  await assertUsable(page, "sign-in-light");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("That is not the admin token of this gateway.").waitFor();
  assert.equal(await page.getByText("authorization: Bearer").count(), 0, "a person sends no headers");
  assert.deepEqual(await context.cookies(), []);
  await page.getByLabel("Admin token").fill(here.gateway.adminToken);
  await page.getByLabel("Admin token").press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const [cookie] = await context.cookies();
  assert.equal(cookie?.name, "__Host-tollgate-operator");
  assert.deepEqual([cookie?.httpOnly, cookie?.secure, cookie?.sameSite], [true, true, "Lax"]);
  const kept = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }]) + document.body.innerHTML",
  );
  assert.ok(!String(kept).includes(here.gateway.adminToken), "no page stores the token");
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Admin token").waitFor();
  await page.reload();
  await page.getByLabel("Admin token").waitFor();
  assert.deepEqual(complaints, []);
});

test("an expired session leads to the sign-in page at the next step, and signing in again continues from there", async (t) => {
  const { page, here, token, open, admin, complaints } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await open("accounts/alice");
  await page.getByRole("heading", { level: 1, name: "alice" }).waitFor();
  // Otherwise a list that is still loading would find the session ended before the user takes a step.
  await settled(page);
  // As another gateway on the same store would end it.
  await here.store.dropSignIns("operator", "session");
  await page.getByRole("button", { name: "Top up" }).click();
  await page.getByLabel("Amount, USD").fill("5.00");
  await page.getByRole("dialog").getByRole("button", { name: "Top up" }).click();
  await page.getByLabel("Admin token").waitFor();
  await signIn(page, token);
  await page.getByRole("heading", { level: 1, name: "alice" }).waitFor();
  assert.equal((await admin("GET", "/accounts/alice")).balance_usd, "0.00");
  assert.deepEqual(complaints, []);
});

test("live figures that are requested again after the session ended lead to the sign-in page", async (t) => {
  const { page, here, open, complaints } = await openOperator(t);
  // The first stream ends, as it does after ten minutes; by then there is no session.
  await page.route("**/live", async (route) => {
    await here.store.dropSignIns("operator", "session");
    await route.fulfill({ status: 200, contentType: "text/event-stream", body: "" });
    await page.unroute("**/live");
  });
  await open("");
  await page.getByLabel("Admin token").waitFor();
  assert.deepEqual(complaints, []);
});

test("the back button goes from page to page, and a link opens in a second tab with the same session", async (t) => {
  const { page, context, here, open, admin, complaints } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await open("accounts");
  await page.getByRole("link", { name: "alice" }).click();
  await page.getByRole("heading", { level: 1, name: "alice" }).waitFor();
  await page.getByRole("link", { name: "Codes" }).click();
  await page.getByRole("heading", { level: 1, name: "Codes" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "alice" }).waitFor();
  const tab = await context.newPage();
  await tab.goto(`${here.adminUrl}/console/accounts/alice`);
  await tab.getByRole("heading", { level: 1, name: "alice" }).waitFor();
  await tab.getByRole("button", { name: "Sign out" }).click();
  await tab.getByLabel("Admin token").waitFor();
  await page.reload();
  await page.getByLabel("Admin token").waitFor();
  await page.goto(`${here.adminUrl}/console/nothing-here`);
  assert.deepEqual(complaints, []);
});

test("the public listener serves nothing of the operator's console", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const page = await fetch(`${here.url}/console/`, { headers: { connection: "close" } });
  const [, assets] = /"(\/console\/assets\/[0-9a-f]+\/)owner\/main\.ts"/.exec(await page.text()) ?? [];
  assert.equal((await fetch(`${here.url}${assets}owner/main.ts`)).status, 200);
  assert.equal((await fetch(`${here.url}${assets}operator/main.ts`)).status, 404);
  for (const path of ["/admin/v1/session", "/admin/v1/live", "/admin/v1/configuration", "/admin/v1/accounts"]) {
    const headers = { authorization: `Bearer ${here.gateway.adminToken}`, connection: "close" };
    assert.equal((await fetch(here.url + path, { headers })).status, 404, path);
  }
});
