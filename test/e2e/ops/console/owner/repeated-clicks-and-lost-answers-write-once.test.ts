/**
 * A double click, a lost answer, a second tab, the back button or an expired session causes no second write and loses
 * no input.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import type { GatewayHere } from "../../../../rig/gateway.ts";
import { codes, spend, startOwnerGateway } from "./furnished-account.ts";
import { admin, at, enter, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

const keyIds = async (gateway: GatewayHere, account: string) =>
  (
    await admin<{ readonly items: readonly { readonly id: string; readonly status: string }[] }>(
      gateway,
      "GET",
      `/accounts/${account}/keys`,
    )
  ).items;

const KEYS_ROUTE = "**/console/api/accounts/*/keys";

/** The answer to the page's next write is lost on its way, after the gateway performed the write. */
async function loseOneAnswer(page: Page, url: string): Promise<void> {
  let isLost = false;
  await page.route(url, async (route) => {
    if (isLost || route.request().method() === "GET") return route.continue();
    isLost = true;
    await route.fetch();
    await route.abort("connectionreset");
  });
}

async function fillNewKey(page: Page, gateway: GatewayHere): Promise<void> {
  await page.goto(at(gateway, "keys/new"));
  await page.getByRole("radio", { name: /^money / }).check();
}

test("two clicks at the same moment create one key", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await fillNewKey(page, gateway);
  let sent = 0;
  page.on("request", (request) => {
    if (request.method() === "POST") sent++;
  });
  await page.getByRole("button", { name: "Create the key" }).evaluate((button: { click(): void }) => {
    button.click();
    button.click();
  });
  await page.getByRole("heading", { name: "Your new key" }).waitFor();
  assert.equal((await keyIds(gateway, name)).length, 2);
  assert.equal(sent, 1);
  assert.deepEqual(complaints, []);
});

test("a key whose value was lost on its way is named, revoked and replaced", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await fillNewKey(page, gateway);
  await loseOneAnswer(page, KEYS_ROUTE);
  const create = page.getByRole("button", { name: "Create the key" });
  await create.click();
  await page.getByText("It is not known whether the key was created.").waitFor();
  assert.equal((await keyIds(gateway, name)).length, 2);
  // The same for a user who reloads the page and starts again.
  await fillNewKey(page, gateway);
  await create.click();
  await page.getByText("was already created under this idempotency_id").waitFor();
  await create.click();
  await page.getByText("was already created under this idempotency_id").waitFor();
  const lost = (await keyIds(gateway, name)).find(({ id }) => id !== keyId);
  assert.equal((await keyIds(gateway, name)).length, 2);
  await page.getByRole("button", { name: "Revoke that key and create another" }).click();
  await page.getByRole("heading", { name: "Your new key" }).waitFor();
  const after = await keyIds(gateway, name);
  assert.equal(after.length, 3);
  assert.deepEqual(
    after.filter(({ status }) => status === "revoked").map(({ id }) => id),
    [lost?.id],
  );
  assert.deepEqual(complaints, []);
});

test("a rotated value that was lost on its way does not work, and the page says to create another one", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key, keyId } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  await loseOneAnswer(page, "**/rotate");
  const rotate = page.getByRole("button", { name: "Create a new value" });
  await rotate.click();
  await page.getByText("It is not known whether a new value was created.").waitFor();
  await rotate.click();
  const fresh = await page.locator("figure.code pre").first().innerText();
  await page.getByText("It is not known whether").waitFor({ state: "detached" });
  await spend(gateway, fresh);
  await spend(gateway, key);
  assert.deepEqual(complaints, []);
});

test("the form of a second tab creates another key, and going back and forward creates none", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page, context } = await signIn(t, gateway, name);
  const other = await context.newPage();
  for (const tab of [page, other]) await fillNewKey(tab, gateway);
  for (const tab of [page, other]) {
    await tab.getByRole("button", { name: "Create the key" }).click();
    await tab.getByRole("heading", { name: "Your new key" }).waitFor();
  }
  assert.equal((await keyIds(gateway, name)).length, 3);
  await page.getByRole("link", { name: "I have stored it" }).click();
  await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "Create the key" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Create the key" }).waitFor();
  assert.equal((await keyIds(gateway, name)).length, 3);
});

test("limits that another tab has set in the meantime are not overwritten", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page, context } = await signIn(t, gateway, name);
  const other = await context.newPage();
  const limitsOf = (tab: Page) => tab.getByRole("region", { name: "Limits", exact: true });
  for (const tab of [page, other]) {
    await tab.goto(at(gateway, `keys/${keyId}`));
    await limitsOf(tab).waitFor();
  }
  await limitsOf(other).getByLabel("Requests in flight").fill("3");
  await limitsOf(other).getByRole("button").click();
  await limitsOf(other).getByText("Saved.").waitFor();
  await limitsOf(page).getByLabel("Per day").fill("1");
  await limitsOf(page).getByRole("button").click();
  await limitsOf(page).getByText("were changed elsewhere while this form was open").waitFor();
  const { limits } = await admin<{ readonly limits: Readonly<Record<string, unknown>> }>(
    gateway,
    "GET",
    `/keys/${keyId}`,
  );
  assert.deepEqual([limits.concurrency, limits.budgets_usd], [3, { day: null, week: null, month: null, total: null }]);
});

test("a key that another tab has revoked stays revoked, and the form says so", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  await page.getByRole("button", { name: "Suspend the key" }).waitFor();
  await admin(gateway, "POST", `/keys/${keyId}/revoke`);
  await page.getByRole("button", { name: "Suspend the key" }).click();
  await page.getByText("is revoked permanently and was not changed").waitFor();
  await page.getByRole("button", { name: "Create a new value" }).click();
  await page.getByText("is revoked permanently and was not changed").nth(1).waitFor();
  await page.reload();
  await page.getByText("This key is permanently revoked.").waitFor();
});

test("a code counts once, however often it is sent", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const [code = ""] = await codes(gateway, 1);
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "cards"));
  await loseOneAnswer(page, "**/redemptions");
  const redeem = page.getByRole("button", { name: "Redeem" });
  await page.getByLabel("Code").fill(code);
  await redeem.click();
  await page.getByText("a code counts only once").waitFor();
  assert.equal(await page.getByLabel("Code").inputValue(), code);
  await redeem.click();
  await page.getByText("has already redeemed this code").waitFor();
  const { items } = await admin<{ readonly items: readonly object[] }>(gateway, "GET", `/accounts/${name}/cards`);
  assert.equal(items.length, 1);
  assert.deepEqual(complaints, []);
});

test("a session that expired while a form was open writes nothing and asks to sign in again", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page, context, complaints } = await signIn(t, gateway, name);
  await fillNewKey(page, gateway);
  await settled(page);
  await context.clearCookies();
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByText("Your session has ended. Sign in again to return to this page.").waitFor();
  assert.equal((await keyIds(gateway, name)).length, 1);
  await enter(page, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  await page.getByRole("button", { name: "Revoke …" }).click();
  await settled(page);
  await context.clearCookies();
  await page.getByRole("button", { name: "Revoke permanently" }).click();
  await page.getByText("Your session has ended. Sign in again to return to this page.").waitFor();
  assert.deepEqual(
    (await keyIds(gateway, name)).map(({ status }) => status),
    ["normal"],
  );
  assert.deepEqual(complaints, []);
});
