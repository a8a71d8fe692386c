/**
 * Overview, keys and cards, empty and full, light and dark, narrow and wide: nothing is too wide, and axe finds nothing
 * serious.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { furnish, startOwnerGateway } from "./furnished-account.ts";
import { assertFits, at, lookAt, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

test("pages of an account with data of every kind fit and are accessible", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "12.5" });
  await furnish(gateway, account);
  await lookAt(t, gateway, account.name, [
    { name: "overview", path: "" },
    { name: "keys", path: "keys" },
    { name: "key", path: `keys/${account.keyId}` },
    { name: "new-key", path: "keys/new" },
    { name: "cards", path: "cards" },
  ]);
});

test("pages of an account without data fit and are accessible", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "0" });
  await lookAt(t, gateway, account.name, [
    { name: "overview-empty", path: "" },
    { name: "cards-empty", path: "cards" },
    { name: "keys-none-found", path: "keys?search=nobody" },
  ]);
});

/** Makes every text half as long again, as a language with longer words would. */
const LENGTHEN = `(() => {
  const texts = document.createTreeWalker(document.querySelector("#app"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data;
    texts.currentNode.data = text + text.slice(0, Math.ceil(text.trim().length / 2));
  }
})()`;

test("texts that are half as long again fit on a narrow screen", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "1234567.123456789" });
  await furnish(gateway, account);
  const { page } = await signIn(t, gateway, account.name, { width: 360, height: 800 });
  for (const path of ["", "keys", "keys/new", `keys/${account.keyId}`, "cards"]) {
    await page.goto(at(gateway, path));
    await settled(page);
    await page.evaluate(LENGTHEN);
    await assertFits(page);
    await page.getByRole("button", { name: "Menu" }).click();
    await assertFits(page);
  }
});

test("Escape closes the menu of a narrow screen, and returns the focus to its button", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "1" });
  const { page } = await signIn(t, gateway, account.name, { width: 360, height: 800 });
  await settled(page);
  const menu = page.getByRole("button", { name: "Menu" });
  await menu.press("Enter");
  const way = page.getByRole("link", { name: "Usage", exact: true });
  await way.focus();
  await way.press("Escape");
  await way.waitFor({ state: "hidden" });
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Menu");
});
