/** Who signs out is not told that the session has ended, whatever else the page asks for meanwhile. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../rig/browser.ts";
import { openOperator, settled, signIn } from "./operator/world.ts";
import { startOwnerGateway } from "./owner/furnished-account.ts";
import { signIn as signInOwner } from "./owner/signed-in.ts";

after(closeBrowser);

/** Signs out, and opens another page after the session has ended and before the page knows. */
async function leaveSlowly(page: Page, signOut: string, link: string): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  await page.route(signOut, async (route) => {
    const response = await route.fetch();
    ended.resolve();
    await told.promise;
    await route.fulfill({ response });
  });
  await page.getByRole("button", { name: "Sign out" }).click();
  await ended.promise;
  await page.getByRole("link", { name: link, exact: true }).click();
  await page.locator("main.sign-in").waitFor();
  assert.equal(await page.getByText("Your session has ended.").count(), 0);
  const answered = page.waitForResponse(signOut);
  told.resolve();
  await (await answered).finished();
  assert.equal(await page.getByText("Your session has ended.").count(), 0);
}

test("an operator who signs out while a page loads is not told of an ended session", async (t) => {
  const { page } = await openOperator(t);
  await settled(page);
  await leaveSlowly(page, "**/session/end", "Upstreams");
});

test("an owner who signs out while a page loads is not told of an ended session", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { page } = await signInOwner(t, gateway, (await gateway.account()).name);
  await settled(page);
  await leaveSlowly(page, "**/sign-out", "Models");
});

test("signing out of a session that has ended already leaves no error for the next one", async (t) => {
  const { page, context, token } = await openOperator(t);
  await settled(page);
  await context.clearCookies();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Sign in with the admin token.").waitFor();
  await signIn(page, token);
  await settled(page);
  assert.equal(await page.getByRole("alert").count(), 0);
});

test("a sign-out that did not reach the gateway leaves no error for the next session", async (t) => {
  const { page, context, token } = await openOperator(t);
  await settled(page);
  await page.route("**/session/end", (route) => route.abort());
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("alert").waitFor();
  await context.clearCookies();
  await page.getByRole("link", { name: "Upstreams", exact: true }).click();
  await page.getByText("Your session has ended.").waitFor();
  await signIn(page, token);
  await settled(page);
  assert.equal(await page.getByRole("alert").count(), 0);
});
