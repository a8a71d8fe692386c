/** Figures of the owner's pages show what their titles say. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { startOwnerGateway } from "./furnished-account.ts";
import { ownerWindow, settledPage, signIn, spend } from "./owner-pages.ts";
import { admin } from "./signed-in.ts";

after(closeBrowser);

async function figuresOf(page: Page): Promise<Readonly<Record<string, string>>> {
  await page.locator("main dl.figures").first().waitFor();
  await settledPage(page);
  const pairs = (await page.evaluate(
    `[...document.querySelectorAll("main .figure")].map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").firstChild.textContent])`,
  )) as [string, string][];
  return Object.fromEntries(pairs);
}

test("a request's charge, hold and balance, and the prices of a model", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key } = await gateway.account({ usd: "5" });
  const id = await spend(gateway, key);
  const ask = await signIn(gateway, name);
  const [line] = (await ask("GET", "/lines?limit=1")).json.items;
  const { page } = await ownerWindow(t, gateway, name, `usage/${id}`);
  const figures = await figuresOf(page);
  assert.equal(figures.Charged, `${line.usd} USD`);
  assert.equal(figures["Balance afterwards"], `${line.balance_usd} USD`);
  await page.goto(`${gateway.url}/console/models`);
  const prices = page.getByRole("region", { name: "Prices: chat-1" }).locator("td");
  await prices.first().waitFor();
  const shown = await prices.evaluateAll((all) =>
    all.map((one) => {
      const { dataset, textContent } = one as unknown as { dataset: { title: string }; textContent: string };
      return `${dataset.title} ${textContent.trim()}`;
    }),
  );
  const listed = ["Input 1.00", "From cache 0.10", "Cache write 1.25", "Cache write, 1 h 2.00", "Output 10.00"];
  assert.deepEqual(
    shown,
    listed.map((one) => `${one} USD`),
  );
});

test("what was spent today is not what was spent in 30 days, and cards that follow one another cover all their days", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account({ usd: "5" });
  for (const id of ["gift-1", "gift-2"]) await admin(gateway, "POST", `/accounts/${name}/gifts`, { card: "day", id });
  const { page } = await ownerWindow(t, gateway, name, "help");
  await settledPage(page);
  // Spending of earlier days cannot be made with the gateway's own clock.
  await page.route(/\/api\/overview$/, async (route) => {
    const answer = await route.fetch();
    const body = { ...((await answer.json()) as object), today_usd: "0.25", total_usd: "1.75" };
    await route.fulfill({ response: answer, json: body });
  });
  await page.goto(`${gateway.url}/console/`);
  const figures = await figuresOf(page);
  assert.deepEqual([figures["Spent today"], figures["Spent in 30 days"]], ["0.25 USD", "1.75 USD"]);
  const ends = page.locator("main tbody tr").nth(1).locator("td[data-title=Ends] span");
  const last = (await ends.evaluate(
    (one) => (one as unknown as { firstChild: { textContent: string } }).firstChild.textContent,
  )) as string;
  await page.getByText(`A card runs until ${last}.`).waitFor();
});
