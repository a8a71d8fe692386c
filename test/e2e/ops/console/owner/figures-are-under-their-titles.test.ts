/** Figures of the owner's pages show what their titles say. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { startOwnerGateway } from "./furnished-account.ts";
import { ownerWindow, settledPage, signIn, spend } from "./owner-pages.ts";

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
