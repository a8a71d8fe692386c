/** Each write to an account, by its form: what it does, what is refused, and that nothing is done twice. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { assertUsable, openOperator, signIn, write } from "./world.ts";

after(closeBrowser);

const closed = (page: Page) => page.getByRole("dialog").waitFor({ state: "detached" });

test("an account is created, topped up, changed and closed", async (t) => {
  const { page, open, admin, complaints } = await openOperator(t);
  await open("accounts");
  await page.getByText("There is no account yet.").waitFor();
  await write(page, "Create an account", { Name: "not a name" });
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await assertUsable(page, "account-refused");
  await page.getByRole("dialog").getByLabel("Name").fill("alice");
  await page.getByRole("dialog").getByRole("button", { name: "Create an account" }).click();
  await page.getByRole("heading", { level: 1, name: "alice" }).waitFor();

  await write(page, "Top up", { "Amount, USD": "ten" });
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByRole("dialog").getByLabel("Amount, USD").fill("12.000000001");
  await page.getByRole("dialog").getByRole("button", { name: "Top up" }).click();
  await page.getByText("12.000000001 USD was booked.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await write(page, "Adjust", { "Amount, USD": "-2.00", Reason: "typo" });
  await page.getByText("-2.00 USD was booked. The balance is 10.000000001 USD.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await closed(page);
  await write(page, "Give a card", { Card: "day" });
  await closed(page);
  await page.getByRole("region", { name: "Time cards" }).getByText("running").waitFor();
  await write(page, "Change the plan", { Plan: "pro" });
  await page.getByText("Plan pro").waitFor();
  await write(page, "Set a label", { Label: "team", Value: "红队 🟥" });
  await page.getByText("team=红队 🟥").waitFor();
  await write(page, "Set budgets", { "Per day, USD": "5.00" });
  await page.getByRole("region", { name: "Budgets" }).getByText("5.00 USD").first().waitFor();
  await write(page, "Set the notice", { "Send a notice when the balance falls below, USD": "1.50" });
  await page.locator(".figure").getByText("1.50 USD").waitFor();
  await write(page, "Invite the owner");
  await page.getByText("This link is shown only this once.").waitFor();
  await page.getByRole("dialog").locator("code").getByText("/sign-in#").waitFor();
  await page.keyboard.press("Escape");
  await closed(page);
  await write(page, "Suspend");
  await page.locator("h1 + .badge").getByText("suspended").waitFor();
  await write(page, "Resume");
  await page.locator("h1 + .badge").getByText("normal").waitFor();
  await write(page, "Rename", { Name: "alice.b" });
  await page.getByRole("heading", { level: 1, name: "alice.b" }).waitFor();
  await write(page, "Close the account", { "Type the account's name to confirm": "alice" });
  await page.getByText("That is not the account's name.").waitFor();
  assert.equal((await admin("GET", "/accounts/alice.b")).status, "normal");
  await page.getByRole("dialog").getByLabel("Type the account's name to confirm").fill("alice.b");
  await page.getByRole("dialog").getByRole("button", { name: "Close the account" }).click();
  await page.locator("h1 + .badge").getByText("closed").waitFor();
  const left = await page.locator(".actions button").allInnerTexts();
  assert.deepEqual(left, ["Adjust", "Invite the owner"], "actions that a closed account would refuse are not offered");

  const { items } = (await admin("GET", "/audit?limit=50")) as { items: { who: string; what: string }[] };
  assert.ok(items.every(({ who }) => who === "operator:session"));
  assert.deepEqual(
    new Set(items.map(({ what }) => what)),
    new Set([
      "operator.sign_in",
      "account.create",
      "topup",
      "account.adjust",
      "card.gift",
      "account.set_plan",
      "account.label",
      "account.set_limits",
      "account.notify",
      "account.invite",
      "account.suspend",
      "account.resume",
      "account.rename",
      "account.close",
    ]),
  );
  assert.deepEqual(complaints, []);
});

test("a double click, a lost answer and a reload cause no second write", async (t) => {
  const { page, open, admin, complaints } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await open("accounts/alice");
  await page.getByRole("button", { name: "Top up" }).click();
  await page.getByLabel("Amount, USD").fill("5.00");
  await page.getByRole("dialog").getByRole("button", { name: "Top up" }).dblclick();
  await page.getByText("5.00 USD was booked.").waitFor();
  assert.equal((await admin("GET", "/accounts/alice")).balance_usd, "5.00");
  await page.keyboard.press("Escape");

  // The gateway performs the write, and its answer is lost on the way.
  let lost = 0;
  await page.route("**/topups", async (route) => {
    await route.fetch();
    lost++;
    await route.abort("connectionreset");
  });
  await page.getByRole("button", { name: "Top up" }).click();
  await page.getByLabel("Amount, USD").fill("7.00");
  await page.getByRole("dialog").getByRole("button", { name: "Top up" }).click();
  await page.getByText("The gateway does not answer.").waitFor();
  assert.equal(lost, 1);
  assert.equal((await admin("GET", "/accounts/alice")).balance_usd, "12.00");
  await page.unroute("**/topups");
  await page.reload();
  await page.getByRole("button", { name: "Top up" }).click();
  await page.getByLabel("Amount, USD").fill("7.00");
  await page.getByRole("dialog").getByRole("button", { name: "Top up" }).click();
  await page.getByText("7.00 USD was already booked and counts once. The balance is 12.00 USD.").waitFor();
  assert.equal((await admin("GET", "/accounts/alice")).balance_usd, "12.00", "the payment is a repetition");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Top up" }).click();
  await page.getByLabel("Amount, USD").fill("7.00");
  await page.getByRole("dialog").getByRole("button", { name: "Top up" }).click();
  await page.getByText("The balance is 19.00 USD.").waitFor();
  assert.deepEqual(complaints, []);
});

test("a payment whose answer was lost counts once, even if the next attempt is refused and the operator signs in again", async (t) => {
  const { page, context, open, admin, token, complaints } = await openOperator(t);
  await admin("POST", "/accounts", { name: "alice" });
  await open("accounts/alice");
  const topUp = async () => {
    await page.getByLabel("Amount, USD").fill("7.00");
    await page.getByRole("dialog").getByRole("button", { name: "Top up" }).click();
  };
  // The gateway performs the write, and a front in between gets no answer.
  await page.route("**/topups", async (route) => {
    await route.fetch();
    await route.fulfill({ status: 504, body: "Gateway Time-out" });
  });
  await page.getByRole("button", { name: "Top up" }).click();
  const lost = page.waitForResponse("**/topups");
  await topUp();
  assert.equal((await lost).status(), 504);
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.unroute("**/topups");
  await context.clearCookies();
  await topUp();
  await page.locator("main.sign-in").waitFor();
  await signIn(page, token);
  await open("accounts/alice");
  await page.getByRole("button", { name: "Top up" }).click();
  await topUp();
  await page.getByText("7.00 USD was already booked and counts once. The balance is 7.00 USD.").waitFor();
  assert.equal((await admin("GET", "/accounts/alice")).balance_usd, "7.00");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Top up" }).click();
  await topUp();
  await page.getByText("The balance is 14.00 USD.").waitFor();
  assert.deepEqual(complaints, []);
});

test("accounts are searched and paged, and their names are not interpreted as markup", async (t) => {
  const { page, open, admin, here, complaints } = await openOperator(t);
  const hostile = ["<img src=x onerror=alert(1)>", "‏שלום", "🧨".repeat(10), "x".repeat(128)];
  for (let number = 0; number < 55; number++) await admin("POST", "/accounts", { name: `team-${number}` });
  for (const [index, value] of hostile.entries()) {
    // A direction-changing character is refused by the gateway itself.
    const label = value.replace("‏", "");
    await admin("PUT", `/accounts/team-${index}/labels`, { labels: { note: label } });
  }
  await here.account();
  await open("accounts");
  await page.locator("tbody tr").nth(49).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 50);
  await page.getByRole("button", { name: "Show more" }).click();
  await page.locator("tbody tr").nth(55).waitFor();
  await page.getByLabel("Search", { exact: true }).fill("team-5");
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator("tbody tr").nth(6).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "team-54" }).waitFor();
  assert.match(page.url(), /search=team-5/);
  await open("accounts?label=note");
  await page.getByText("note=<img src=x onerror=alert(1)>").waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await assertUsable(page, "accounts-hostile");
  await open("accounts/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E");
  await page.getByRole("alert").first().waitFor();
  await open("accounts/nobody");
  await page.getByText("There is no account named nobody.").first().waitFor();
  assert.deepEqual(complaints, []);
});
