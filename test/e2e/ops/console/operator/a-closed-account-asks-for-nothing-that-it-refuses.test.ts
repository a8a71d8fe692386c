/** The page of a closed account does not tell the operator to create a key or to give a card: both would be refused. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

test("a closed account without keys and cards only says so", async (t) => {
  const { page, open, admin } = await openOperator(t);
  await admin("POST", "/accounts", { name: "carol" });
  const texts = async () => {
    await open("accounts/carol");
    await page.getByText("This account has no keys.").waitFor();
    return page.locator("main .empty").allInnerTexts();
  };
  const [cards, keys] = await texts();
  assert.equal(cards, "No time cards. Give one, or create codes that the owner redeems.");
  assert.equal(keys, "This account has no keys. Create the first one.");
  await admin("POST", "/accounts/carol/close");
  const [cardsClosed, keysClosed] = await texts();
  assert.equal(cardsClosed, "No time cards.");
  assert.equal(keysClosed, "This account has no keys.");
});
