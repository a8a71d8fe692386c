/** Each write to a key and to codes, by its form. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { assertUsable, chat, openOperator, write } from "./world.ts";

after(closeBrowser);

test("a key is created, changed and revoked", async (t) => {
  const { page, open, admin, here, complaints } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await admin("POST", "/accounts/alice/topups", { usd: "5.00", id: "pay_1" });
  await open("accounts/alice");
  await write(page, "Create a key", { Group: "money", Name: "Laptop <b>of</b> Alice" });
  await page.getByText("Copy it now").waitFor();
  const text = (await page.getByRole("dialog").locator("pre code").textContent()) ?? "";
  assert.match(text, /^sk-/);
  await page.getByRole("dialog").getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate("navigator.clipboard.readText()"), text);
  await page.keyboard.press("Escape");
  await chat(here, text);
  await page.getByRole("link", { name: "Laptop <b>of</b> Alice" }).click();
  await page.getByRole("heading", { level: 1, name: "Laptop <b>of</b> Alice" }).waitFor();
  assert.ok(!(await page.content()).includes(text), "the key is not shown again");

  await write(page, "Change the group", { Group: "limited-money" });
  await page.locator(".figure").getByText("limited-money").waitFor();
  await write(page, "Rename", { Name: "" });
  await page.locator("h1").getByText("key_").waitFor();
  await write(page, "Set the expiry", { "Expiry, UTC": "2099-01-31T12:00" });
  await page.locator(".figure").getByText("Jan 31, 2099").waitFor();
  await write(page, "Set limits", {
    "Budget per day, USD": "3.00",
    "Requests per minute": "60",
    Models: "chat-1, messages-*",
  });
  await page.locator(".panel").getByText("chat-1, messages-*").waitFor();
  await page.getByRole("region", { name: "Budgets" }).getByText("3.00 USD").first().waitFor();
  await write(page, "Set caps", { "Requests in flight": "many" });
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByRole("dialog").getByLabel("Requests in flight").fill("4");
  await page.getByRole("dialog").getByLabel("Addresses").fill("192.0.2.0/24");
  await page.getByRole("dialog").getByRole("button", { name: "Set caps" }).click();
  await page.locator(".panel").getByText("192.0.2.0/24").waitFor();
  await write(page, "Rotate", { "Hours that the old value still works": "1" });
  await page.getByText("Copy it now").waitFor();
  assert.notEqual(await page.getByRole("dialog").locator("pre code").textContent(), text);
  await page.keyboard.press("Escape");
  await page.getByText("Old value works until").waitFor();
  await write(page, "Suspend");
  await page.locator("h1 + .badge").getByText("suspended").waitFor();
  await write(page, "Resume");
  await page.locator("h1 + .badge").getByText("normal").waitFor();
  await write(page, "Revoke");
  await page.locator("h1 + .badge").getByText("revoked").waitFor();
  await page.getByRole("button", { name: "Rotate" }).waitFor({ state: "detached" });
  assert.deepEqual(complaints, []);
});

test("a lost answer to a new key makes no second one", async (t) => {
  const { page, open, admin, complaints } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await open("accounts/alice");
  await page.route("**/keys", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    await route.abort("connectionreset");
  });
  await write(page, "Create a key", { Group: "money" });
  await page.getByText("The gateway does not answer.").waitFor();
  await page.unroute("**/keys");
  await page.getByRole("dialog").getByRole("button", { name: "Create a key" }).click();
  // The page names the key whose value was not shown, so that it can be revoked.
  await page
    .getByRole("dialog")
    .getByText(/key_[0-9A-Za-z]{18}/)
    .first()
    .waitFor();
  const { items } = (await admin("GET", "/accounts/alice/keys")) as { items: unknown[] };
  assert.equal(items.length, 1);
  assert.deepEqual(complaints, []);
});

test("codes are created, saved once as a file, and voided", async (t) => {
  const { page, open, admin, complaints } = await openOperator(t);
  await open("codes");
  await page.getByText("No batches.").waitFor();
  await write(page, "Create codes", { Card: "day", Codes: "3", Label: '=cmd|" /C calc"!A0', "Last day": "2099-12-31" });
  await page.getByText("These codes are shown only this once.").waitFor();
  await assertUsable(page, "codes-once");
  const texts = ((await page.getByRole("dialog").locator("pre code").textContent()) ?? "").split("\n");
  assert.equal(texts.length, 3);
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const csv = readFileSync(await (await saving).path(), "utf8");
  assert.ok(texts.every((text) => csv.includes(text)));
  assert.ok(csv.includes(`"'=cmd|"" /C calc""!A0"`), "a spreadsheet reads the cell as text");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.getByRole("heading", { level: 1, name: "Codes" }).isVisible(), false);
  assert.equal(await page.getByText(texts[0] ?? "").isVisible(), true);
  await page.emulateMedia({ media: "screen" });
  await page.keyboard.press("Escape");
  await admin("POST", "/accounts", { name: "alice" });
  await admin("POST", "/accounts/alice/redemptions", { code: texts[0] ?? "" });

  await page.getByRole("link", { name: "=cmd" }).click();
  await page.locator(".figure").filter({ hasText: "Redeemed" }).getByText("1").waitFor();
  await page.getByText("the quotas of the redeemed codes").waitFor();
  assert.ok(!(await page.content()).includes(texts[1] ?? ""), "the codes are not shown again");
  await page.getByRole("button", { name: "Void", exact: true }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Void", exact: true }).click();
  await page.locator(".figure").filter({ hasText: "Void" }).getByText("1").waitFor();
  await write(page, "Void unredeemed codes");
  await page.locator(".figure").filter({ hasText: "Unused" }).getByText("0").waitFor();
  await page.getByRole("link", { name: "acct_" }).click();
  await page.getByRole("link", { name: "alice" }).waitFor();
  assert.deepEqual(complaints, []);
});
