/** Every write of the page Keys, in a browser, and its effect on the key's next request. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, openWindow, type Page, picture } from "../../../../rig/browser.ts";
import type { GatewayHere } from "../../../../rig/gateway.ts";
import { assertAccessible } from "../accessible.ts";
import { HOSTILE_NAMES, startOwnerGateway } from "./furnished-account.ts";
import { admin, assertFits, at, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

interface ShownKey {
  readonly id: string;
  readonly name: string | null;
  readonly group: string;
  readonly status: string;
  readonly expires_at: string | null;
  readonly limits: Readonly<Record<string, unknown>>;
}

const keysOf = async (gateway: GatewayHere, account: string) =>
  (await admin<{ readonly items: readonly ShownKey[] }>(gateway, "GET", `/accounts/${account}/keys`)).items;
const keyOf = (gateway: GatewayHere, id: string) => admin<ShownKey>(gateway, "GET", `/keys/${id}`);

/** The status of a request with a key. */
async function statusOf(gateway: GatewayHere, key: string, model = "chat-1"): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
  return response.status;
}

const panel = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const saved = (page: Page, name: string) => panel(page, name).getByText("Saved. It takes effect").waitFor();

test("a key is created, shown once, and works with the settings that are shown", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const account = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, account.name, { width: 360, height: 800 });
  await page.goto(at(gateway, "keys"));
  await page.getByRole("link", { name: "Create a key" }).click();
  await page.getByLabel("Name").fill(HOSTILE_NAMES[0]);
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByText("Choose a group first.").waitFor();
  await page.getByRole("radio", { name: /^limited-money / }).check();
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByRole("heading", { name: "Your new key" }).waitFor();
  const text = await page.locator("figure.code pre").first().innerText();
  assert.match(text, /^sk-[0-9A-Za-z]{48}$/);
  assert.equal(await statusOf(gateway, text), 200);
  await page.getByRole("button", { name: "Copy" }).first().click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate("navigator.clipboard.readText()"), text);
  await page.getByLabel("Model").selectOption("messages-1");
  const claude = await page.locator("figure.code pre").nth(1).innerText();
  assert.ok(claude.includes(`ANTHROPIC_BASE_URL=${gateway.url}\n`), claude);
  assert.ok(claude.includes(`ANTHROPIC_AUTH_TOKEN=${text}`) && claude.includes("ANTHROPIC_MODEL=messages-1"), claude);
  await page.getByLabel("Client").selectOption("Codex");
  await page.getByText(`base_url = "${gateway.url}/v1"`).waitFor();
  await assertFits(page);
  await assertAccessible(page, t.name);
  await picture(page, "console-owner-key-shown-once-narrow");
  await page.getByRole("link", { name: "I have stored it" }).click();
  await page.getByRole("link", { name: HOSTILE_NAMES[0] }).waitFor();
  await page.goBack();
  await settled(page);
  assert.ok(!(await page.content()).includes(text), "the key is shown only once");
  const made = (await keysOf(gateway, account.name)).find(({ name }) => name === HOSTILE_NAMES[0]);
  assert.equal(made?.group, "limited-money");
  assert.deepEqual(complaints, []);
});

test("name, expiry, group and limits of a key are changed", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key, keyId } = await gateway.account();
  await admin(gateway, "PUT", `/keys/${keyId}/caps`, { budgets_usd: { month: "40" }, requests_per_minute: 600 });
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  for (const hostile of HOSTILE_NAMES) {
    await panel(page, "Rename").getByLabel("Name", { exact: true }).fill(hostile);
    await panel(page, "Rename").getByRole("button").click();
    await page.getByRole("heading", { level: 1, name: hostile, exact: true }).waitFor();
    assert.equal((await keyOf(gateway, keyId)).name, hostile);
  }
  await panel(page, "Change the expiry").getByLabel("Expires", { exact: true }).fill("2040-01-31T12:00");
  await panel(page, "Change the expiry").getByRole("button").click();
  await saved(page, "Change the expiry");
  assert.equal((await keyOf(gateway, keyId)).expires_at, "2040-01-31T12:00:00.000Z");
  // The form shows minutes: an expiry that was not edited keeps its seconds.
  const exact = "2040-01-31T12:00:45.000Z";
  await admin(gateway, "PUT", `/keys/${keyId}/expiry`, { expires_at: exact });
  await page.reload();
  await panel(page, "Change the expiry").getByRole("button").click();
  await saved(page, "Change the expiry");
  assert.equal((await keyOf(gateway, keyId)).expires_at, exact);
  await panel(page, "Change the expiry").getByLabel("Expires", { exact: true }).fill("");
  await panel(page, "Change the expiry").getByRole("button").click();
  await page.getByText("Jan 31, 2040").waitFor({ state: "detached" });
  assert.equal((await keyOf(gateway, keyId)).expires_at, null);
  assert.equal(await statusOf(gateway, key, "messages-1"), 200);
  await panel(page, "Change the group")
    .getByRole("radio", { name: /^double-money / })
    .check();
  await panel(page, "Change the group").getByRole("button").click();
  await saved(page, "Change the group");
  assert.equal((await keyOf(gateway, keyId)).group, "double-money");
  assert.equal(await statusOf(gateway, key, "messages-1"), 403);
  const limits = panel(page, "Limits");
  await limits.getByText("operator’s cap: 40.00 USD").waitFor();
  await limits.getByLabel("Per day").fill("2.000000001");
  await limits.getByLabel("Per month").fill("30");
  await limits.getByLabel("Requests per minute").fill("500");
  await limits.getByLabel("Models").fill("chat-1\nchat-alias");
  await limits.getByLabel("Addresses").fill("127.0.0.0/8, 192.0.2.7");
  await limits.getByRole("button").click();
  await saved(page, "Limits");
  assert.deepEqual((await keyOf(gateway, keyId)).limits, {
    budgets_usd: { day: "2.000000001", week: null, month: "30.00", total: null },
    requests_per_minute: 500,
    tokens_per_minute: null,
    concurrency: null,
    models: ["chat-1", "chat-alias"],
    addresses: ["127.0.0.0/8", "192.0.2.7"],
  });
  await page.getByText("Per day: 2.000000001 USD of 2.000000001 USD left").waitFor();
  // A value that the form itself has saved does not count as a change by another user.
  await limits.getByLabel("Requests per minute").fill("400");
  const written = page.waitForResponse((response) => response.request().method() === "PUT");
  await limits.getByRole("button").click();
  assert.equal((await written).status(), 200);
  assert.equal((await keyOf(gateway, keyId)).limits.requests_per_minute, 400);
  assert.deepEqual(complaints, []);
});

test("a key is suspended, resumed, rotated, and revoked by its name", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key, keyId } = await gateway.account();
  await admin(gateway, "PUT", `/keys/${keyId}/name`, { name: "Laptop" });
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  await page.getByRole("button", { name: "Suspend the key" }).click();
  await page.getByText("This key is suspended").waitFor();
  assert.equal(await statusOf(gateway, key), 401);
  await page.getByRole("button", { name: "Resume the key" }).click();
  await page.getByRole("button", { name: "Suspend the key" }).waitFor();
  assert.equal(await statusOf(gateway, key), 200);
  await page.getByLabel("The old value works for").selectOption("an hour");
  await page.getByRole("button", { name: "Create a new value" }).click();
  const shown = panel(page, "New value").locator("figure.code pre").first();
  const fresh = await shown.innerText();
  assert.deepEqual([await statusOf(gateway, fresh), await statusOf(gateway, key)], [200, 200]);
  await page.getByText("Old value works until").waitFor();
  await page.getByLabel("The old value works for").selectOption("not at all: it ends at once");
  await page.getByRole("button", { name: "Create a new value" }).click();
  await shown.filter({ hasNotText: fresh }).waitFor();
  const last = await shown.innerText();
  assert.deepEqual([await statusOf(gateway, last), await statusOf(gateway, fresh)], [200, 401]);
  await page.getByRole("button", { name: "Revoke …" }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke this key permanently?" });
  await dialog.getByText(`Laptop (${keyId})`).waitFor();
  await assertAccessible(page, t.name);
  await picture(page, "console-owner-revoke-light");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal((await keyOf(gateway, keyId)).status, "normal");
  await page.getByRole("button", { name: "Revoke …" }).click();
  await dialog.getByRole("button", { name: "Revoke permanently" }).click();
  await page.getByText("This key is permanently revoked.").waitFor();
  assert.equal(await statusOf(gateway, last), 401);
  assert.equal((await keyOf(gateway, keyId)).status, "revoked");
  assert.deepEqual(complaints, []);
});

test("keys are found by name and status, and the address contains the search", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  await admin(gateway, "PUT", `/keys/${keyId}/name`, { name: "Laptop of Alice" });
  await admin(gateway, "POST", `/accounts/${name}/keys`, { group: "money", name: "Server" });
  await admin(gateway, "POST", `/keys/${keyId}/suspend`);
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "keys"));
  await page.getByRole("link", { name: "Server" }).waitFor();
  await page.getByLabel("Search by name").fill("laptop");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Server" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Laptop of Alice" }).waitFor();
  await page.getByLabel("Status").selectOption("revoked");
  await page.getByText("No key matches.").waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Laptop of Alice" }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Server" }).waitFor();
  await page.goForward();
  await page.getByRole("link", { name: "Server" }).waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).search, "?search=laptop");
  await page.reload();
  await page.getByRole("link", { name: "Laptop of Alice" }).click();
  await page.getByText("This key is suspended").waitFor();
  assert.deepEqual(complaints, []);
});

test("a key is created with the keyboard alone", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "keys/new"));
  await page.getByRole("radio", { name: /^money / }).waitFor();
  const focused = () => page.evaluate<string>("document.activeElement.value || document.activeElement.textContent");
  const tabTo = async (what: string) => {
    for (let tabs = 0; (await focused()) !== what; tabs++) {
      assert.ok(tabs < 40, `${what} cannot be reached`);
      await page.keyboard.press("Tab");
    }
  };
  await tabTo("money");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "double-money");
  await tabTo("Create the key");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Your new key" }).waitFor();
  await tabTo("I have stored it");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
  assert.deepEqual(
    (await keysOf(gateway, name)).map(({ group }) => group),
    ["money", "double-money"],
  );
  assert.deepEqual(complaints, []);
});

test("more keys than a page holds are paged forward and back", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  for (let i = 1; i <= 105; i++) {
    await admin(gateway, "POST", `/accounts/${name}/keys`, { group: "money", name: `Key ${i}` });
  }
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "keys"));
  await page.getByRole("link", { name: "Key 99", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Key 100", exact: true }).count(), 0);
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByRole("link", { name: "Key 105", exact: true }).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 6);
  await page.getByRole("link", { name: "First page" }).click();
  await page.getByRole("link", { name: "Key 1", exact: true }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Key 105", exact: true }).waitFor();
  assert.deepEqual(complaints, []);
});

test("the settings show the configured address, and a group without models is reported", async (t) => {
  const gateway = await startOwnerGateway({
    console: { path: "/desk", public_url: "https://gate.example" },
    groups: { empty: { kind: "pay_per_use", models: ["pro-only"] } },
  });
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page, complaints } = await openWindow(t);
  const { link } = await admin<{ readonly link: string }>(gateway, "POST", `/accounts/${name}/invitations`);
  assert.ok(link.startsWith("https://gate.example/desk/sign-in#"), link);
  await page.goto(link.replace("https://gate.example", gateway.url));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("link", { name: "Create a key" }).click();
  await page.getByRole("radio", { name: /^empty .*No model in your plan/ }).check();
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByText("ANTHROPIC_BASE_URL=https://gate.example").waitFor();
  await page.getByText("The group serves no model of your plan yet").waitFor();
  await page.getByText("ANTHROPIC_MODEL=MODEL").waitFor();
  assert.deepEqual(complaints, []);
});
