/** What the operator's pages show: live figures, lookups, explanations and refusals. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { assertUsable, chat, openOperator } from "./world.ts";

after(closeBrowser);

/** Sends a page the live figures in pieces of a few bytes, as a network may cut them. */
const CUT_SMALL = `{
  const asked = window.fetch;
  const pieces = () => new TransformStream({
    transform(bytes, to) {
      for (let at = 0; at < bytes.length; at += 100) to.enqueue(bytes.slice(at, at + 100));
    },
  });
  window.fetch = async (...how) => {
    const response = await asked(...how);
    if (!response.url.endsWith("/live") || !response.body) return response;
    return new Response(response.body.pipeThrough(pieces()), { status: response.status });
  };
}`;

test("live traffic is shown in two windows at once, however the stream is cut", async (t) => {
  const { page, context, here, open, complaints } = await openOperator(t);
  const { key } = await here.account({ usd: "5" });
  await open("");
  await page.getByText("Ready for traffic").waitFor();
  await page.getByText("connected", { exact: true }).waitFor();
  const second = await context.newPage();
  await second.addInitScript(CUT_SMALL);
  await second.goto(`${here.adminUrl}/console/`);
  await second.getByText("connected", { exact: true }).waitFor();
  await chat(here, key);
  await chat(here, key, "nothing");
  await page.getByRole("region", { name: "Refusals by cause" }).getByText("unknown model").waitFor();
  await page.getByRole("region", { name: "Spend by group" }).getByText("money").waitFor();
  await second.getByRole("region", { name: "Spend by group" }).getByText("money").waitFor();
  await page
    .locator(".figure")
    .getByText(/^\d+ ms/)
    .first()
    .waitFor();
  await assertUsable(page, "overview-traffic");
  assert.deepEqual(complaints, []);
});

test("the audit shows new entries of others, and a ledger line opens to the figures it was computed from", async (t) => {
  const { page, here, open, admin, complaints } = await openOperator(t);
  const { name, key } = await here.account({ usd: "5" });
  await open("records");
  await page.getByRole("region", { name: "Audit" }).getByText("Operator signed in").waitFor();
  await admin("POST", "/accounts", { name: "bob" });
  await page.getByRole("region", { name: "Audit" }).getByText("Account created").waitFor();
  assert.equal(await page.getByText("Account created").first().getAttribute("title"), "account.create");
  // The search finds the words and the name of the API.
  for (const search of ["account created", "account.create"]) {
    await page.getByLabel("Search").fill(search);
    await page.getByText("Operator signed in").waitFor({ state: "detached" });
    await page.getByText("Account created").first().waitFor();
    await page.getByLabel("Search").fill("");
    await page.getByText("Operator signed in").waitFor();
  }
  // A refusal is shown in words; the code is in the tooltip, and the search finds both.
  await assert.rejects(admin("PUT", "/accounts/bob/plan", { plan: "nope" }));
  for (const search of ["no such plan", "unknown_plan"]) {
    await page.getByLabel("Search").fill(search);
    await page.getByText("Operator signed in").waitFor({ state: "detached" });
    assert.equal(await page.getByText("no such plan").getAttribute("title"), "unknown_plan");
  }
  await page.getByLabel("Search").fill("nobody at all");
  await page.getByText("No line matches.").waitFor();
  await chat(here, key);
  await page.getByRole("link", { name: "Ledger", exact: true }).click();
  await page.getByLabel("Account").fill(name);
  await page.getByRole("button", { name: "Search" }).click();
  const amountOf = (line: number) =>
    page
      .getByRole("row")
      .filter({ has: page.getByRole("button", { name: `Open line ${line}` }) })
      .locator("td")
      .nth(4);
  assert.match(await amountOf(1).innerText(), /^\+5\.00 USD/);
  assert.match(await amountOf(2).innerText(), /^-0\.0\d+ USD/);
  await page.getByRole("button", { name: "Open line 2" }).click();
  await page.getByRole("dialog").getByText("Basis of the amount").waitFor();
  await assertUsable(page, "ledger-line");
  await page.keyboard.press("Escape");
  await page.getByLabel("Follow").check();
  await admin("POST", `/accounts/${name}/topups`, { usd: "1.00", id: "pay_2" });
  await page.getByRole("button", { name: "Open line 3" }).waitFor();
  assert.deepEqual(complaints, []);
});

test("the ledger lines of one request are found by its id, however long the search takes, and a wrong id is reported", async (t) => {
  const { page, here, open, complaints } = await openOperator(t);
  const { name, key } = await here.account({ usd: "5" });
  const [first, second] = [await chat(here, key), await chat(here, key)];
  await open("records/ledger");
  await page.getByLabel("Request").fill(first);
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("Name an account to see its ledger.").waitFor();
  await page.getByLabel("Account").fill(name);
  // Text copied from a mail has blanks around it.
  await page.getByLabel("Request").fill(` ${first} `);
  const search = () => page.getByRole("button", { name: "Search" }).click();
  await search();
  const lines = page.getByRole("region", { name: "Ledger" }).locator("tbody tr");
  await page.getByRole("button", { name: "Open line 2" }).waitFor();
  assert.equal(await lines.count(), 1);
  assert.equal(await lines.getByText(first).count(), 1);
  await assertUsable(page, "ledger-request");
  await page.getByRole("button", { name: "Open line 2" }).click();
  await page.getByRole("dialog").getByText("Basis of the amount").waitFor();
  await page.keyboard.press("Escape");

  // A long ledger, whose first answer does not contain a matching line yet.
  const asked: string[] = [];
  await page.route("**/requests/**", async (route) => {
    asked.push(new URL(route.request().url()).search);
    if (asked.length > 1) return route.fallback();
    return route.fulfill({ json: { account_id: "acct_1", request: second, items: [], next: 1 } });
  });
  await page.getByLabel("Request").fill(second);
  await search();
  await page.getByRole("button", { name: "Open line 3" }).waitFor();
  assert.deepEqual(asked, ["", "?after=1"]);
  await page.unroute("**/requests/**");
  assert.deepEqual(complaints, []);

  await page.getByLabel("Request").fill(first.replace(/.{4}$/, "0000"));
  await search();
  await page.getByRole("alert").getByText("No ledger line of this account is about the request").waitFor();
  await page.getByRole("alert").getByText("Copy the complete id.").waitFor();
  await page.getByLabel("Request").fill("4711");
  await search();
  await page.getByRole("alert").getByText("must be the id of a request: req_ and 24 letters or digits").waitFor();
  await page.getByLabel("Request").fill("");
  await search();
  await page.getByRole("button", { name: "Open line 1" }).waitFor();
  assert.equal(await lines.count(), 3);
});

test("a request is explained, with its route or the reason why it has none", async (t) => {
  const { page, here, open, complaints } = await openOperator(t);
  const { keyId } = await here.account({ usd: "5" });
  await open("explain");
  await page.getByLabel("Key id").fill("not a key");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Key id").fill(keyId);
  await page.getByLabel("Model").fill("chat-1");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("The request would be sent to a model server.").waitFor();
  await assertUsable(page, "explain-answer");
  await page.getByLabel("Model").fill("nothing");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText("404", { exact: true }).waitFor();
  assert.deepEqual(complaints, []);
});

test("a refused reload is shown with the place of the error, and without secrets", async (t) => {
  const { page, here, open, token, complaints } = await openOperator(t);
  here.gateway.reloadFailed([
    { file: "tollgate.yaml", line: 12, column: 5, key: "models.big-1", message: "must be <b>a</b> map" },
  ]);
  await open("configuration");
  await page.getByText("tollgate.yaml:12:5").waitFor();
  await page.getByText("The previous configuration stays in force.").waitFor();
  await page.getByLabel("Search").fill("admin_token");
  await page.locator("details[open] pre").getByText('"***"').waitFor();
  assert.ok(!(await page.content()).includes(token));
  await assertUsable(page, "configuration-refused");
  here.gateway.reload(here.settings);
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("A later reload was accepted.").waitFor();
  await page.locator(".figure").filter({ hasText: "Generation" }).getByText("2").waitFor();
  assert.deepEqual(complaints, []);
});

test("margin by model and upstream, and a check of all ledgers, are shown", async (t) => {
  const { page, here, open, complaints } = await openOperator(t);
  const { key } = await here.account({ usd: "5" });
  await chat(here, key);
  await open("reconcile");
  await page.getByLabel("By").selectOption("model");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("region", { name: "Reconcile" }).getByText("chat-1").waitFor();
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  assert.match((await saving).suggestedFilename(), /^usage-model-/);
  await page.getByRole("button", { name: "Check all accounts" }).click();
  await page.getByText("All accounts are balanced.").waitFor();
  await page.getByLabel("From").fill("2020-01-02");
  await page.getByLabel("To").fill("2020-01-01");
  await page.getByText("Choose a first day that is not after the last one.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Show" }).isDisabled(), true);
  assert.deepEqual(complaints, []);
});
