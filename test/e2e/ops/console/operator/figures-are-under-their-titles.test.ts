/** Figures and columns of the operator's pages show what their titles say, and a final action says that it is final. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { chat, openOperator } from "./world.ts";

after(closeBrowser);

/** The figures of a page by their titles. */
async function figuresOf(page: Page): Promise<Readonly<Record<string, string>>> {
  await page.locator("main dl.figures").first().waitFor();
  const pairs = (await page.evaluate(
    `[...document.querySelectorAll("main .figure")].map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").firstChild.textContent])`,
  )) as [string, string][];
  return Object.fromEntries(pairs);
}

/** The cells of the first row of a page's first table, by the titles of their columns. */
async function firstRowOf(page: Page): Promise<Readonly<Record<string, string>>> {
  const row = page.locator("main tbody tr").first();
  await row.waitFor();
  const pairs = (await row.evaluate(
    (one) =>
      [...(one as unknown as { cells: Iterable<{ dataset: { title: string }; textContent: string }> }).cells].map(
        ({ dataset, textContent }) => [dataset.title, textContent.trim()],
      ) as unknown,
  )) as [string, string][];
  return Object.fromEntries(pairs);
}

test("an account's figures, and the words of its closing", async (t) => {
  const { page, here, open, admin } = await openOperator(t);
  const { name, key } = await here.account({ usd: "5" });
  await chat(here, key);
  const account = await admin("GET", `/accounts/${name}`);
  await open(`accounts/${name}`);
  const figures = await figuresOf(page);
  assert.equal(figures.Balance, `${account.balance_usd} USD`);
  assert.equal(figures.Spent, `${account.spent_usd} USD`);
  assert.notEqual(account.spent_usd, account.topped_up_usd);
  await page.getByText(`of ${account.topped_up_usd} USD topped up and adjusted`).waitFor();
  await page.getByRole("button", { name: "Close the account" }).click();
  const words = `Closing ${name} is final: its keys never work again, and it accepts no more money.`;
  await page.getByRole("dialog").getByText(words).waitFor();
});

test("a batch's figures", async (t) => {
  const { page, here, open, admin } = await openOperator(t);
  const { name } = await here.account();
  const batch = await admin("POST", "/codes", { card: "day", count: 5, label: "Fair" });
  const [one, two, three] = batch.items as { id: string; code: string }[];
  await admin("POST", `/accounts/${name}/redemptions`, { code: one?.code });
  for (const code of [two, three]) await admin("POST", `/codes/${code?.id}/void`);
  await open(`codes/${batch.batch_id}`);
  const { Created, Redeemed, Unused, Void, Expired } = await figuresOf(page);
  assert.deepEqual(
    { Created, Redeemed, Unused, Void, Expired },
    { Created: "5", Redeemed: "1", Unused: "2", Void: "2", Expired: "0" },
  );
});

test("charged, cost, absorbed and margin", async (t) => {
  const { page, here, open, admin } = await openOperator(t);
  const { key } = await here.account({ usd: "5", group: "double-money" });
  await chat(here, key);
  const { items } = (await admin("GET", "/usage?by=group")) as { items: readonly Record<string, string>[] };
  const [sums] = items;
  await open("reconcile");
  const row = await firstRowOf(page);
  assert.deepEqual(
    [row.Group, row.Charged, row.Cost, row.Absorbed, row.Margin],
    ["double-money", ...["usd", "cost_usd", "absorbed_usd", "margin_usd"].map((name) => `${sums?.[name]} USD`)],
  );
  assert.notEqual(row.Charged, row.Cost);
  const figures = await figuresOf(page);
  assert.deepEqual([figures.Charged, figures.Cost, figures.Margin], [row.Charged, row.Cost, row.Margin]);
});

test("requests in flight at an upstream, of the most", async (t) => {
  const { page, open, here } = await openOperator(t);
  const { key } = await here.account({ usd: "5" });
  await chat(here, key);
  await open("upstreams");
  assert.equal((await firstRowOf(page))["In flight"], "0 of 200");
});

test("notices that wait and notices that were dropped", async (t) => {
  const { page, open } = await openOperator(t);
  const oldest = { oldest_kind: "balance_low", oldest_at: new Date().toISOString() };
  const queue = { account: "alice", waiting: 3, dropped: 7, failures: 2, last_error: null, next_try_at: null };
  await page.route(/\/admin\/v1\/notices$/, (route) =>
    route.fulfill({
      json: { items: [{ ...queue, ...oldest }], receiver: "https://hooks.example", delivering: true, stopped: null },
    }),
  );
  await open("notices");
  const row = await firstRowOf(page);
  assert.deepEqual([row.Account, row.Waiting, row.Dropped, row["Failed attempts"]], ["alice", "3", "7", "2"]);
});
