/** When a session ends while a page is open, the page says so, and the next sign-in returns to it. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { openOperator, settled, signIn } from "./world.ts";

after(closeBrowser);

/** The tab's title at the moment at which the page begins to have these words. */
function titleUnder(page: Page, words: string): Promise<string> {
  return page.evaluate<string>(`new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (!document.body.textContent.includes(${JSON.stringify(words)})) return;
      observer.disconnect();
      resolve(document.title);
    });
    observer.observe(document.body, { childList: true, subtree: true });
  })`);
}

test("a page whose session has ended says so, and the sign-in returns to it", async (t) => {
  const { page, open, here, token, context } = await openOperator(t);
  const { name } = await here.account();
  await open(`accounts/${name}`);
  await page.getByRole("heading", { level: 1, name }).waitFor();
  assert.equal(await page.title(), `${name} · Accounts · Tollgate`);
  // A list that is still to be asked for would find the session ended before the next step of the operator.
  await settled(page);
  // Another tab signs out.
  await context.clearCookies();
  const words = "Your session has ended. Sign in again to return to this page.";
  const title = titleUnder(page, words);
  await page.getByRole("link", { name: "Upstreams" }).click();
  await page.getByText(words).waitFor();
  assert.equal(await title, "Tollgate");
  await signIn(page, token);
  await page.getByRole("heading", { level: 1, name: "Upstreams" }).waitFor();
  assert.equal(await page.title(), "Upstreams · Tollgate");
});

test("who signs out, or was never signed in, is not told of an ended session", async (t) => {
  const { page, context, here } = await openOperator(t);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Sign in with the admin token.").waitFor();
  assert.equal(await page.getByText("Your session has ended.").count(), 0);
  await context.clearCookies();
  await page.goto(`${here.adminUrl}/console/accounts`);
  await page.getByText("Sign in with the admin token.").waitFor();
  assert.equal(await page.getByText("Your session has ended.").count(), 0);
});
