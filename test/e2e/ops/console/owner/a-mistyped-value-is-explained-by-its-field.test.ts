/**
 * What an owner has mistyped is explained by the field and what it takes, in the language of the page, and not by a
 * member of the API; what a Chinese keyboard types in full width counts as the plain characters.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { codes, startOwnerGateway } from "./furnished-account.ts";
import { admin, at, signIn } from "./signed-in.ts";

after(closeBrowser);

const fullWidth = (text: string): string =>
  text.replace(/[!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) + 0xfee0));

/** Sends the form of a panel. @returns what is shown as refused. */
async function refused(page: Page, panel: string): Promise<string> {
  const form = page.locator(`section[aria-label="${panel}"]`);
  await form.locator("button.main").click();
  const problem = form.locator("[role=alert]");
  await problem.waitFor();
  return (await problem.innerText()).trim();
}

test("a text that is no code, and a code in full width", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const [code = ""] = await codes(gateway, 1);
  const { page, complaints } = await signIn(t, gateway, name, { language: "zh-CN" });
  await page.goto(at(gateway, "cards"));
  const field = page.getByLabel("兑换码", { exact: true });
  await field.fill("ABC");
  await page.getByRole("button", { name: "兑换", exact: true }).click();
  await page.locator("[role=alert]").waitFor();
  assert.equal(
    (await page.locator("[role=alert]").innerText()).trim(),
    "兑换码是 17 位字母和数字。请与收到的兑换码逐个字符核对。",
  );
  await field.fill(fullWidth(code));
  await page.getByRole("button", { name: "兑换", exact: true }).click();
  await page.getByText("已获得时长卡 day").waitFor();
  assert.deepEqual(complaints, []);
});

test("an expiry that is over, and limits of a key", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  await page.getByLabel("Expires", { exact: true }).fill("2020-01-01T00:00");
  assert.match(await refused(page, "Change the expiry"), /^Choose an expiry in the future\./);
  const perDay = page.getByLabel("Per day", { exact: true });
  const perMinute = page.getByLabel("Requests per minute", { exact: true });
  const addresses = page.getByLabel("Addresses", { exact: true });
  await perDay.fill("1,000");
  assert.match(await refused(page, "Limits"), /^Budget “Per day”: enter an amount of US dollars above 0/);
  await perDay.fill(fullWidth("5.5"));
  await perMinute.fill("many");
  assert.match(await refused(page, "Limits"), /^“Requests per minute”: enter a whole number from 1 to 1,000,000,000\./);
  await perMinute.fill(fullWidth("60"));
  await addresses.fill("192.0.2.7，198.51.100.0/24、203.0.113.9");
  await page.locator(`section[aria-label="Limits"] button.main`).click();
  await page.locator(`section[aria-label="Limits"]`).getByText("Saved.").waitFor();
  const { limits } = await admin<{ limits: Record<string, unknown> }>(gateway, "GET", `/keys/${keyId}`);
  assert.deepEqual(
    [limits.budgets_usd, limits.requests_per_minute, limits.addresses],
    [{ day: "5.50", week: null, month: null, total: null }, 60, ["192.0.2.7", "198.51.100.0/24", "203.0.113.9"]],
  );
  assert.deepEqual(complaints, []);
});
