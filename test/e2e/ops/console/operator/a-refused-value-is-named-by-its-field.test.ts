/** A value that the gateway refuses is named by the label of its field, in each language, and not as a member of the API. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

/** Sends a form. @returns why it is refused. */
async function refused(page: Page, button: string, values: readonly string[]): Promise<string> {
  await page.getByRole("button", { name: button, exact: true }).click();
  const dialog = page.getByRole("dialog");
  for (const [at, value] of values.entries()) await dialog.locator("form input").nth(at).fill(value);
  await dialog.getByRole("button", { name: button, exact: true }).click();
  const said = await dialog.getByRole("alert").innerText();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  return said;
}

test("an amount, the second field of a form, a budget, and a member with another name", async (t) => {
  const { here, open, page, complaints } = await openOperator(t);
  const { name } = await here.account();
  await open(`accounts/${name}`);
  assert.match(await refused(page, "Top up", ["-5"]), /^“Amount, USD” must be an amount above 0/);
  assert.match(await refused(page, "Adjust", ["5", ""]), /^“Reason” must be 1 to 256 characters/);
  assert.match(await refused(page, "Set budgets", ["", "1,000"]), /^“Per calendar month, USD” must be an amount/);
  assert.match(
    await refused(page, "Set the notice", ["x"]),
    /^“Send a notice when the balance falls below, USD” must be an amount/,
  );
  assert.deepEqual(complaints, []);
});

test("a request to explain", async (t) => {
  const { open, page, complaints } = await openOperator(t);
  await open("explain");
  await page.getByLabel("Key id").fill("my-key");
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  assert.match(await page.getByRole("alert").innerText(), /^“Key id” must be the id of a key/);
  assert.deepEqual(complaints, []);
});

test("in Chinese, beside the Chinese words of the refusal", async (t) => {
  const { here, open, page } = await openOperator(t, { language: "zh-CN" });
  const { name } = await here.account();
  await open(`accounts/${name}`);
  assert.match(await refused(page, "充值", ["-5"]), /^输入的格式不正确。\s+“金额（美元）” must be an amount/);
});
