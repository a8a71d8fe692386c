/** A dialog has the focus on its first field, and gives it back however it ends; a shown secret is not closed by Enter. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Locator, type Page } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

/** Resolves when the focus is on an element. */
const focusOn = (page: Page, element: Locator): Promise<void> => element.and(page.locator(":focus")).waitFor();

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

test("the focus goes to the first field, and back to the button when the dialog is closed, canceled or sent", async (t) => {
  const { page, here, open, complaints } = await openOperator(t);
  const { name } = await here.account();
  await open(`accounts/${name}`);
  await button(page, "Set a label").focus();
  for (const end of ["Escape", "Close", "Cancel", "Enter"]) {
    await page.keyboard.press("Enter");
    await focusOn(page, page.getByLabel("Label", { exact: true }));
    await page.keyboard.type("team");
    await page.keyboard.press("Tab");
    await page.keyboard.type("red");
    if (end.startsWith("E")) await page.keyboard.press(end);
    else await page.getByRole("dialog").getByRole("button", { name: end }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await focusOn(page, button(page, "Set a label"));
  }
  await page.getByText("team=red").waitFor();
  assert.deepEqual(complaints, []);
});

test("a key that is shown once stays when Enter is pressed again", async (t) => {
  const { page, here, open } = await openOperator(t);
  const { name } = await here.account();
  await open(`accounts/${name}`);
  await button(page, "Create a key").click();
  await focusOn(page, page.getByLabel("Group", { exact: true }));
  await page.getByRole("dialog").getByLabel("Name").press("Enter");
  await page.getByText("the key is shown only this once").waitFor();
  await focusOn(page, page.getByRole("dialog"));
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  assert.match((await page.getByRole("dialog").textContent()) ?? "", /sk-/);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await focusOn(page, button(page, "Create a key"));
});
