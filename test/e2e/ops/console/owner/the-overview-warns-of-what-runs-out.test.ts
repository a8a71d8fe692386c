/** The Overview shows what an account has and has spent, what is about to run out, and which models have problems. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page, picture } from "../../../../rig/browser.ts";
import { refusingPort } from "../../../../rig/refusing-port.ts";
import { assertAccessible } from "../accessible.ts";
import { furnish, spend, startOwnerGateway } from "./furnished-account.ts";
import { admin, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

const figure = (page: Page, title: string) =>
  page
    .locator(".figure")
    .filter({ has: page.getByText(title, { exact: true }) })
    .locator("dd");

test("balance, spend and cards are those of the account, to the last digit", async (t) => {
  const gateway = await startOwnerGateway({
    cards: { day: { lasts: "20m" }, week: { plan: "pro", group: "cards", lasts: "7d" } },
  });
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "12.500000001" });
  await furnish(gateway, account);
  const { balance_usd, spent_usd } = await admin<{ readonly balance_usd: string; readonly spent_usd: string }>(
    gateway,
    "GET",
    `/accounts/${account.name}`,
  );
  const { page, complaints } = await signIn(t, gateway, account.name);
  await settled(page);
  assert.match(await figure(page, "Balance").innerText(), new RegExp(`^${balance_usd} USD`));
  assert.match(await figure(page, "Available").innerText(), new RegExp(`^${balance_usd} USD`));
  assert.match(await figure(page, "Spent today").innerText(), new RegExp(`^${spent_usd} USD`));
  assert.match(await figure(page, "Spent in 30 days").innerText(), new RegExp(`^${spent_usd} USD`));
  await page
    .getByRole("img", { name: /amount spent on each day/ })
    .locator("canvas")
    .waitFor();
  await page.getByText("As a table").click();
  const rows = page.getByRole("region", { name: "The last 30 days" }).locator("tbody tr");
  assert.equal(await rows.count(), 30);
  assert.deepEqual((await rows.first().locator("td").allInnerTexts()).slice(1), [`${spent_usd} USD`, "2"]);
  await page.getByText(/^The key Laptop of Alice expires (?:in 2 days|tomorrow)\.$/).waitFor();
  await page.getByText(/^The time card day ends in \d+ minutes, and no other card of its group follows\.$/).waitFor();
  await admin(gateway, "POST", `/accounts/${account.name}/gifts`, { card: "week", id: "week" });
  await page.reload();
  await page.getByText(/^The time card day ends in \d+ minutes\. Another card of its group follows\.$/).waitFor();
  await page.getByText("All 8 models are up.").waitFor();
  assert.deepEqual(complaints, []);
});

test("a balance below its threshold, and a budget and a quota that are nearly used up, are shown", async (t) => {
  const gateway = await startOwnerGateway({
    cards: { day: { plan: "pro", group: "cards", lasts: "30d", quota: { spend: "0.001" } } },
  });
  t.after(() => gateway.close());
  const { name, key, keyId } = await gateway.account({ usd: "3" });
  await admin(gateway, "PUT", `/accounts/${name}/notify`, { below_usd: "5" });
  await admin(gateway, "PUT", `/keys/${keyId}/limits`, { budgets_usd: { day: "0.001" } });
  await admin(gateway, "POST", `/accounts/${name}/gifts`, { card: "day", id: "gift" });
  const made = await admin<{ readonly key: string }>(gateway, "POST", `/accounts/${name}/keys`, { group: "cards" });
  // An expired key causes no warnings any more.
  const over = await admin<{ readonly key: string; readonly id: string }>(gateway, "POST", `/accounts/${name}/keys`, {
    group: "money",
  });
  await admin(gateway, "PUT", `/keys/${over.id}/limits`, { budgets_usd: { day: "0.001" } });
  for (const one of [key, made.key, over.key]) await spend(gateway, one);
  await admin(gateway, "POST", `/keys/${over.id}/revoke`, {});
  const { page, complaints } = await signIn(t, gateway, name, { dark: true });
  await page.getByText(/The balance is 2\.99\d+ USD, below 5\.00 USD\./).waitFor();
  await page.getByText(/The time card day has 0\.000\d+ USD of 0\.001 USD left\./).waitFor();
  const budget = page.getByRole("link", { name: /The budget per day of the key .* It resets in/ });
  await assertAccessible(page, t.name);
  await picture(page, "console-owner-overview-warnings-dark");
  await budget.click();
  await page.getByText(/Per day: 0\.000\d+ USD of 0\.001 USD left/).waitFor();
  assert.deepEqual(complaints, []);
});

test("models whose upstreams are ejected are shown as having problems, without mentioning the upstreams", async (t) => {
  const nobody = await refusingPort(t);
  const gateway = await startOwnerGateway({ upstreams: { "up-chat": { base_url: `http://127.0.0.1:${nobody}` } } });
  t.after(() => gateway.close());
  const { name, key } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await page.getByText("All 7 models are up.").waitFor();
  // Five failures in a row eject an upstream.
  for (let failures = 0; failures < 5; failures++) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "Hello" }] }),
    });
    await response.text();
  }
  await page.reload();
  await page.getByText("3 models are in trouble: requests for them may fail.").waitFor();
  assert.match(await page.locator("ul.chips li").first().innerText(), /^chat-1\s+In trouble$/);
  assert.match(await page.locator("ul.chips li").last().innerText(), /\s+Up$/);
  assert.ok(!(await page.content()).includes("up-chat"));
  await picture(page, "console-owner-overview-trouble-light");
  assert.deepEqual(complaints, []);
});

test("a suspended or closed account is shown as such", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await admin(gateway, "POST", `/accounts/${name}/suspend`);
  await page.reload();
  await page.getByText("This account is suspended: all of its keys are refused.").waitFor();
  await admin(gateway, "POST", `/accounts/${name}/resume`);
  await page.reload();
  await settled(page);
  assert.equal(await page.getByText("This account is suspended").count(), 0);
  assert.deepEqual(complaints, []);
});
