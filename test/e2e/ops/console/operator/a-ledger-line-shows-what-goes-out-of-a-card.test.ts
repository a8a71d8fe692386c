/** The operator's ledger shows with a sign what goes to or from a customer's balance or card, and repeats no sum with one. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import type { LedgerLineAnswer } from "../../../../../src/console/answers/ledger.ts";
import { closeBrowser } from "../../../../rig/browser.ts";
import { chat, openOperator } from "./world.ts";

after(closeBrowser);

test("what a card pays has a minus, and an opening line of an archived ledger has no sign", async (t) => {
  const { page, here, open, complaints } = await openOperator(t);
  const { name, key } = await here.account({ usd: "5" });
  await chat(here, key);
  await page.route("**/accounts/*/ledger?*", async (route) => {
    const response = await route.fetch();
    const { items, ...rest } = (await response.json()) as { items: readonly LedgerLineAnswer[] };
    const changed = items.map((line) =>
      line.kind === "usage" ? { ...line, debit: "ent_month" } : { ...line, kind: "opening" },
    );
    await route.fulfill({ response, json: { ...rest, items: changed } });
  });
  await open("records/ledger");
  await page.getByLabel("Account").fill(name);
  await page.getByRole("button", { name: "Search" }).click();
  const amountOf = (line: number) =>
    page
      .getByRole("row")
      .filter({ has: page.getByRole("button", { name: `Open line ${line}` }) })
      .locator("td")
      .nth(4);
  assert.match(await amountOf(2).innerText(), /^-0\.0\d+ USD/);
  assert.match(await amountOf(1).innerText(), /^5\.00 USD/);
  assert.deepEqual(complaints, []);
});
