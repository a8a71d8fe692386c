/** While the answer to a search is on its way, the rows of the search before are not shown as its result. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

test("a search shows that it is running, not the rows of the one before", async (t) => {
  const { page, open, admin } = await openOperator(t);
  for (const name of ["alice", "bob"]) await admin("POST", "/accounts", { name });
  await open("accounts");
  await page.getByRole("link", { name: "bob" }).waitFor();
  const answered = Promise.withResolvers<void>();
  await page.route(/search=alice/, async (route) => {
    await answered.promise;
    await route.continue();
  });
  await page.getByLabel("Search", { exact: true }).fill("alice");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("Loading …").waitFor();
  assert.equal(await page.getByRole("link", { name: "bob" }).count(), 0);
  answered.resolve();
  await page.getByRole("link", { name: "alice" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "bob" }).count(), 0);
});

/** Submits the search. @returns the rows in the first frame that is painted with its address. */
const SEARCHED = `new Promise((resolve) => {
  document.querySelector("main form button").click();
  requestAnimationFrame(() => resolve([...document.querySelectorAll("tbody tr")].map((row) => row.textContent)));
})`;

test("the rows of the search before are gone in the first frame", async (t) => {
  const { page, open, admin } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await open("accounts");
  await page.getByRole("link", { name: "alice" }).waitFor();
  const answered = Promise.withResolvers<void>();
  await page.route(/search=bob/, (route) => answered.promise.then(() => route.continue()));
  await page.getByLabel("Search", { exact: true }).fill("bob");
  assert.deepEqual(await page.evaluate(SEARCHED), []);
  assert.match(page.url(), /search=bob/);
  answered.resolve();
  await page.getByText("No account matches.").waitFor();
});

test("a first day after the last one is reported at its field, and nothing is asked", async (t) => {
  const { page, open } = await openOperator(t);
  await open("reconcile?since=2026-11-01&until=2026-11-30");
  await page.getByLabel("From").fill("2026-12-01");
  await page.getByText("Choose a first day that is not after the last one.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Show" }).isDisabled());
  await page.getByLabel("From").fill("2026-11-30");
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(/since=2026-11-30&until=2026-11-30/);
});
