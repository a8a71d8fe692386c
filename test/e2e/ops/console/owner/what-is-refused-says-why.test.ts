/** Each refusal on the pages Keys and Cards says what is wrong and what to do, and keeps what was typed. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page, picture } from "../../../../rig/browser.ts";
import { assertAccessible } from "../accessible.ts";
import { codes, startOwnerGateway } from "./furnished-account.ts";
import { admin, at, signIn } from "./signed-in.ts";

after(closeBrowser);

/** Fills one field of the limits, saves, and waits for the message. */
async function refusedLimit(page: Page, label: string, typed: string, said: string): Promise<void> {
  const limits = page.getByRole("region", { name: "Limits", exact: true });
  await limits.getByLabel(label).fill(typed);
  await limits.getByRole("button").click();
  await limits.getByRole("alert").getByText(said).waitFor();
  assert.equal(await limits.getByLabel(label).inputValue(), typed);
  await limits.getByLabel(label).fill("");
}

test("limits that are invalid, contradict each other or exceed the operator's cap are refused with the reason", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  await admin(gateway, "PUT", `/keys/${keyId}/caps`, { budgets_usd: { month: "40" }, concurrency: 5 });
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  await refusedLimit(page, "Per day", "1,5", "Budget “Per day”: enter an amount of US dollars above 0");
  await refusedLimit(page, "Per day", "0.000000001", "the cost of the smallest request");
  await refusedLimit(page, "Per month", "40.01", "is above the operator's cap of");
  await refusedLimit(page, "Requests in flight", "6", "is above the operator's cap of");
  await refusedLimit(page, "Requests in flight", "6", "or ask the operator to raise the cap.");
  await refusedLimit(page, "Tokens per minute", "many", "enter a whole number from 1 to 1,000,000,000.");
  await refusedLimit(page, "Tokens per minute", "0", "enter a whole number from 1 to 1,000,000,000.");
  await refusedLimit(page, "Models", "other-family", "The limits name no model that the key's group serves.");
  await refusedLimit(page, "Addresses", "192.0.2.7/24", "must be an address or a CIDR block such as 192.0.2.0/24");
  const limits = page.getByRole("region", { name: "Limits", exact: true });
  await limits.getByLabel("Per day").fill("5");
  await refusedLimit(page, "Per week", "4", "The budget per week is below the budget per day");
  await assertAccessible(page, t.name);
  await picture(page, "console-owner-limits-refused-light");
  assert.deepEqual(complaints, []);
});

test("an invalid name, a past expiry and a removed group are refused with the reason", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, `keys/${keyId}`));
  const rename = page.getByRole("region", { name: "Rename", exact: true });
  for (const bad of [" starts with a blank", "x".repeat(65), "turned \u202e round"]) {
    await rename.getByLabel("Name", { exact: true }).fill(bad);
    await rename.getByRole("button").click();
    await rename.getByRole("alert").getByText("1 to 64 printable characters").waitFor();
    assert.equal(await rename.getByLabel("Name", { exact: true }).inputValue(), bad);
  }
  const end = page.getByRole("region", { name: "Change the expiry", exact: true });
  await end.getByLabel("Expires", { exact: true }).fill("2020-01-01T00:00");
  await end.getByRole("button").click();
  await end.getByRole("alert").getByText("Choose an expiry in the future.").waitFor();
  await end.getByText("suspend or revoke it").waitFor();
  const move = page.getByRole("region", { name: "Change the group", exact: true });
  await page.route("**/group", (route) => route.continue({ postData: JSON.stringify({ group: "mony" }) }));
  await move.getByRole("radio", { name: /^cards / }).check();
  await move.getByRole("button").click();
  await move.getByText("Did you mean money?").waitFor();
  assert.deepEqual(complaints, []);
});

test("a key of another account and an unknown page are reported", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const mine = await gateway.account();
  const others = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, mine.name);
  await page.goto(at(gateway, `keys/${others.keyId}`));
  await page.getByText("Go back to your keys: this key is not one of them.").waitFor();
  await page.goto(at(gateway, "keys/<script>"));
  await page.getByText("There is no such page.").waitFor();
  await page.goto(at(gateway, "nowhere"));
  await page.getByText("There is no such page.").waitFor();
  assert.deepEqual(complaints, []);
});

test("codes that are mistyped, unknown, expired or guessed too often are refused with the reason", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const other = await gateway.account();
  const [code = "", taken = ""] = await codes(gateway, 2);
  await admin(gateway, "POST", `/accounts/${other.name}/redemptions`, { code: taken });
  const { page, complaints } = await signIn(t, gateway, name);
  await page.goto(at(gateway, "cards"));
  const refused = async (typed: string, said: string) => {
    await page.getByLabel("Code").fill(typed);
    await page.getByRole("button", { name: "Redeem" }).click();
    await page.getByRole("alert").getByText(said).waitFor();
    assert.equal(await page.getByLabel("Code").inputValue(), typed);
  };
  await refused("", "Enter the code first.");
  await refused("HELLO", "A code has 17 letters and digits.");
  const mistyped = code.replace(/.$/, (last) => (last === "7" ? "8" : "7"));
  await refused(mistyped, "The code has a typing error: its last character does not match the others.");
  await page.getByText("Compare it with the code that was sold, character by character.").waitFor();
  await assertAccessible(page, t.name);
  await picture(page, "console-owner-code-mistyped-light");
  await refused(taken, "it does not exist, it is void, or another account has redeemed it");
  await page.getByText("The seller can look up its state.").waitFor();
  // As people type it: lowercase letters, spaces instead of dashes.
  await page.getByLabel("Code").fill(`  ${code.toLowerCase().replaceAll("-", " ")} `);
  await page.getByRole("button", { name: "Redeem" }).click();
  await page.getByText("The card day is yours.").waitFor();
  assert.equal(await page.getByLabel("Code").inputValue(), "");
  await page.getByText("5.00 USD of 5.00 USD").waitFor();
  for (;;) {
    await page.getByLabel("Code").fill(taken);
    await page.getByRole("button", { name: "Redeem" }).click();
    const said = await page.getByRole("alert").innerText();
    if (/tried too many codes/.test(said)) break;
    assert.match(said, /cannot redeem this code/);
  }
  assert.deepEqual(complaints, []);
});

test("an unreachable gateway is reported, and the page continues when the gateway is back", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const { page, complaints } = await signIn(t, gateway, name);
  await page.route("**/console/api/**", (route) => route.abort("connectionrefused"));
  await page.getByRole("link", { name: "Cards", exact: true }).click();
  await page.getByText("The gateway does not answer.").waitFor();
  await page.unroute("**/console/api/**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("This account has no time card.").waitFor();
  assert.deepEqual(complaints, []);
});

test("refusals are shown in Chinese, and in the gateway's own words if they contain a figure", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, keyId } = await gateway.account();
  await admin(gateway, "PUT", `/keys/${keyId}/caps`, { concurrency: 5 });
  const { page, complaints } = await signIn(t, gateway, name, { language: "zh-CN" });
  await page.goto(at(gateway, "cards"));
  await page.getByLabel("兑换码").fill("0000-0000-0000-0000-1");
  await page.getByRole("button", { name: "兑换" }).click();
  await page.getByText("兑换码输入有误").waitFor();
  await page.getByText("逐个字符核对").waitFor();
  await page.goto(at(gateway, `keys/${keyId}`));
  await page.getByLabel("同时请求数").fill("6");
  await page.getByRole("button", { name: "保存：限制" }).click();
  await page.getByText("超过了管理员设定的上限。").waitFor();
  await page.getByText("concurrency is above the operator's cap of 5.").waitFor();
  assert.deepEqual(complaints, []);
});
