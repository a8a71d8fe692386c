/** The page Usage in a real browser: sums, thousands of lines, filters, single requests, and files for spreadsheets. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import test, { after } from "node:test";
import { parse } from "csv-parse/sync";
import { newKey } from "../../../../../src/values/key.ts";
import { nanoUsd } from "../../../../../src/values/money.ts";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../../rig/gateway.ts";
import { assertSound, ownerWindow, settledPage, spend } from "./owner-pages.ts";

after(closeBrowser);

const DAY_MS = 86_400_000;

async function csvOf(page: Page): Promise<{ name: string; rows: Record<string, string>[] }> {
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const file = await downloading;
  const text = readFileSync(await file.path(), "utf8");
  assert.ok(text.startsWith("\ufeff"), "the file begins with a byte order mark");
  return { name: file.suggestedFilename(), rows: parse(text, { bom: true, columns: true }) };
}

/** Makes this many payments of a billionth of a dollar. */
async function payments(gateway: GatewayHere, { tag }: TestAccount, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    await gateway.store.credit(tag, { id: `tiny-${at}`, amount: nanoUsd(1n), kind: "topup", note: "" });
  }
}

test("thousands of lines are read a page at a time, and saved completely", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const first = await spend(gateway, alice.key);
  await payments(gateway, alice, 2_500);
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "usage?by=requests");
  await settledPage(page);
  const lines = page.locator("main tbody tr");
  assert.equal(await lines.count(), 50);
  assert.match(await lines.first().innerText(), /\+0\.000000001 USD/);
  for (const count of [100, 150]) {
    await page.getByRole("button", { name: "Older lines" }).click();
    await lines.nth(count - 1).waitFor();
    assert.equal(await lines.count(), count);
  }
  // While older lines are loading none is shown twice.
  const held = Promise.withResolvers<void>();
  await page.route("**/lines?*before=*", (route) => held.promise.then(() => route.continue()), { times: 1 });
  await page.getByRole("button", { name: "Older lines" }).click();
  await page.locator("main [aria-busy=true]").first().waitFor();
  assert.equal(await lines.count(), 150);
  held.resolve();
  await lines.nth(199).waitFor();
  await assertSound(page, "200 lines");
  const { name, rows } = await csvOf(page);
  assert.match(name, /^ledger-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/);
  assert.equal(rows.length, 2_502);
  assert.equal(rows.at(-2)?.reference, first);
  // The model's only line is far down; the filter still finds it.
  await page.getByLabel("Model").selectOption("chat-1");
  await page.getByRole("link", { name: "chat-1" }).waitFor();
  assert.equal(await lines.count(), 1);
  assert.match(await lines.first().innerText(), /-0\.0\d+ USD/);
  // With Ctrl the browser opens the link in a new tab.
  await page.getByRole("link", { name: "chat-1" }).click({ modifiers: ["Control"] });
  assert.equal(new URL(page.url()).pathname, "/console/usage");
  await page.getByRole("link", { name: "chat-1" }).click();
  await page.getByRole("heading", { name: "How the amount was computed" }).waitFor();
  assert.equal(new URL(page.url()).pathname, `/console/usage/${first}`);
  await page.getByText("This amount was charged.").waitFor();
  assert.equal(await page.getByText("answered completely").getAttribute("title"), "answered");
  await page.getByText("The multiplier of the group money is 1.00.").waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "chat-1" }).waitFor();
  assert.deepEqual(complaints, []);
});

test("the file download stops when the page is left", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  await payments(gateway, alice, 500);
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "usage?by=requests");
  await settledPage(page);
  const left = Promise.withResolvers<void>();
  let asked = 0;
  await page.route("**/lines?*limit=200*", async (route) => {
    asked++;
    await left.promise;
    await route.continue().catch(() => undefined);
  });
  const begun = page.waitForRequest(/limit=200/);
  await page.getByRole("button", { name: "Download CSV" }).click();
  await begun;
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  left.resolve();
  // Two more requests to the gateway: enough time to notice a download that continues.
  for (const name of ["Usage", "Overview"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await settledPage(page);
  }
  assert.equal(asked, 1);
  assert.deepEqual(complaints, []);
});

test("sums by day, model, key and group agree with the ledger, for each span, and many keys are shown in parts", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  for (let at = 0; at < 120; at++) {
    const key = newKey(alice.tag, randomBytes);
    await gateway.store.createKey(alice.tag, { id: key.id, hash: key.hash, group: "money", name: `Key ${at}` });
    await spend(gateway, key.text);
  }
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "usage?by=key&days=1");
  const rows = page.locator("main tbody tr");
  await rows.first().waitFor();
  assert.equal(await rows.count(), 100);
  await page.getByRole("button", { name: "Show more (20 left)" }).click();
  assert.equal(await rows.count(), 120);
  const spent = (await gateway.store.getAccount(alice.tag))?.spent ?? 0n;
  for (const [view, span, days] of [
    ["Day", "7 days", 7],
    ["Model", "30 days", 30],
    ["Group", "90 days", 90],
    ["Key", "Today", 1],
  ] as const) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await page.getByRole("link", { name: span, exact: true }).click();
    await page.locator(`nav a[aria-current]`, { hasText: span }).waitFor();
    await settledPage(page);
    const saved = await csvOf(page);
    const [since = "", until = ""] = saved.name.match(/\d{4}-\d\d-\d\d/g) ?? [];
    assert.equal((Date.parse(until) - Date.parse(since)) / DAY_MS + 1, days, saved.name);
    const sum = saved.rows.reduce(
      (all, { usd = "" }) => all + BigInt(usd.replace(".", "").padEnd(usd.indexOf(".") + 9, "0")),
      0n,
    );
    assert.equal(sum, spent, view);
    assert.equal(
      saved.rows.reduce((all, { requests }) => all + Number(requests), 0),
      120,
    );
  }
  // A custom span, and an invalid one.
  await page.getByRole("link", { name: "From – to" }).click();
  await page.getByLabel("From", { exact: true }).fill("2026-02-01");
  await page.getByLabel("To", { exact: true }).fill("2026-01-01");
  await page.getByText("Choose a first day that is not after the last one.").waitFor();
  await page.getByLabel("To", { exact: true }).fill("2026-02-28");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByText("Nothing was spent in this period.").waitFor();
  await page.goto(`${gateway.url}/console/usage?since=2020-01-01&until=2026-02-28`);
  await page
    .getByRole("alert")
    .getByText(/since must be/)
    .waitFor();
  assert.deepEqual(complaints, []);
});

test("a file has no cell that a spreadsheet would run", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "usage?by=key");
  for (const name of [
    '=HYPERLINK("http://x")',
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "＝1+1",
    'a;=1+1,"b"',
    "plain, with comma",
  ]) {
    await gateway.store.changeKey(alice.tag, alice.keyId, { name });
    if (name.startsWith("=H")) await spend(gateway, alice.key);
    for (const by of ["key", "requests"]) {
      await page.goto(`${gateway.url}/console/usage?by=${by}`);
      await settledPage(page);
      await page.getByText(name).first().waitFor({ state: "attached" });
      const { rows } = await csvOf(page);
      const cell = by === "key" ? rows[0]?.name : rows.find(({ kind }) => kind === "usage")?.key_name;
      assert.doesNotMatch(cell ?? "", /^\s*[=+\-@＝]|;[=+\-@]/u, name);
      assert.equal((cell ?? "").replaceAll("'", ""), name);
      for (const row of rows)
        assert.ok(Object.values(row).every((text) => /^-?[\d.]+$/.test(text) || !/^[=+\-@]/.test(text)));
    }
  }
  assert.deepEqual(complaints, []);
});

test("a request of another account, or an unknown one, is not found, and the page says what to do", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const [alice, bob] = [await gateway.account(), await gateway.account()];
  const others = await spend(gateway, bob.key);
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, `usage/${others}`);
  await page.getByRole("alert").getByText("No ledger line of this account is about the request").waitFor();
  await page.getByText("Copy the complete id.").waitFor();
  await page.goto(`${gateway.url}/console/usage/${encodeURIComponent("<b>x</b>")}`);
  await page
    .getByRole("alert")
    .getByText(/must be/)
    .waitFor();
  assert.equal(await page.locator("main b").count(), 0);
  assert.deepEqual(complaints, []);
});
