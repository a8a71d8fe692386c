/** The help page in a real browser: addresses, errors, one request, an explanation, and a text for support. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { ERROR_ROWS } from "../../../../../src/values/errors.ts";
import { closeBrowser, type Locator } from "../../../../rig/browser.ts";
import { type ConfigPlaces, testConfig } from "../../../../rig/config.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { ownerWindow, settledPage, spend } from "./owner-pages.ts";

after(closeBrowser);

const config = (places: ConfigPlaces) =>
  testConfig(places, { console: { support: { email: "help@example.com", url: "https://example.com/help" } } });

/** Presses a button that copies. @returns what is in the clipboard once the button says that it has copied */
async function copiedBy(button: Locator): Promise<string> {
  await button.click();
  await button.getByText("Copied").waitFor();
  return button.page().evaluate("navigator.clipboard.readText()");
}

test("each address is copied as shown, and this gateway serves it", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "help");
  for (const path of ["", "/v1", "/v1/chat/completions", "/v1/messages", "/v1/responses"]) {
    assert.equal(
      await copiedBy(page.getByRole("button", { name: `Copy ${gateway.url}${path}`, exact: true })),
      `${gateway.url}${path}`,
    );
  }
  await page.getByRole("combobox", { name: "Model" }).selectOption("messages-1");
  await page.getByText("Claude Code", { exact: true }).click();
  const settings = await page.getByLabel("Claude Code, shell").innerText();
  assert.match(settings, new RegExp(`ANTHROPIC_BASE_URL=${gateway.url}$`, "m"));
  assert.match(settings, /ANTHROPIC_MODEL=messages-1/);
  assert.deepEqual(complaints, []);
});

test("every error of the gateway is listed, is found by its text, and has a Chinese text", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "help/errors");
  const rows = page.locator("main tbody tr");
  await rows.first().waitFor();
  assert.deepEqual(await page.locator("main tbody td code").allInnerTexts(), Object.keys(ERROR_ROWS));
  await page.getByLabel("Find an error").fill("404 prefix");
  await rows.nth(1).waitFor({ state: "detached" });
  assert.equal(await rows.getByText("doubled_prefix").count(), 1);
  await page.getByLabel("Find an error").fill("nonsense");
  await page.getByText("No error matches.").waitFor();
  const chinese = await ownerWindow(t, gateway, alice.name, "help/errors", { language: "zh-CN" });
  await chinese.page.locator("main tbody tr").first().waitFor();
  const means = await chinese.page.locator("main tbody td:nth-child(3)").allInnerTexts();
  assert.equal(means.length, Object.keys(ERROR_ROWS).length);
  for (const text of means) assert.match(text, /[\u4e00-\u9fff]/);
  assert.deepEqual([...complaints, ...chinese.complaints], []);
});

test("a request's id, or an error that contains it, leads to the charge", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const id = await spend(gateway, alice.key);
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "help/request");
  await page.getByLabel("Request id").fill("req_short");
  await page.getByRole("button", { name: "Look it up" }).click();
  await page.getByText("This is not a request id.").waitFor();
  await page.getByLabel("Request id").fill(`Something failed (${id}).`);
  await page.getByLabel("Request id").press("Enter");
  await page.getByText("This amount was charged.").waitFor();
  assert.deepEqual(complaints, []);
});

test("a request of the account's own key is explained step by step, and this costs nothing", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "help/explain");
  await page.getByRole("combobox", { name: "Key" }).getByRole("option").first().waitFor({ state: "attached" });
  const tell = async (model: string) => {
    await page.getByLabel("Model", { exact: true }).fill(model);
    await page.getByRole("button", { name: "Explain" }).click();
  };
  await tell("chat-1");
  await page.getByText("It would be answered.").waitFor();
  await page.getByText("The group money serves the model.").waitFor();
  await tell("<b>no</b>");
  await page.getByText("It would be refused: 404, unknown_model.").waitFor();
  assert.equal(await page.locator("main b").count(), 0);
  await tell("pro-only");
  await page.getByText("It would be refused: 404, not_in_plan.").waitFor();
  await page.getByLabel("Output limit, tokens").fill("x");
  assert.equal(await page.getByRole("button", { name: "Explain" }).isDisabled(), true);
  assert.deepEqual((await gateway.store.readLedger(alice.tag, 0, 10)).length, 1);
  assert.deepEqual(complaints, []);
});

test("the text for support has the four facts, and never a key", async (t) => {
  const gateway = await startGatewayHere({ config });
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "help/support");
  await page.getByLabel("Complete error text").fill(`404 model_not_found\nwith ${alice.key}`);
  await page.getByText("This contains a key").waitFor();
  await page.getByLabel("Request address that was used").fill(`${gateway.url}/v1/v1/messages`);
  await page.getByLabel("Model name as typed").fill("Chat 1");
  await page.getByLabel("Group of the key").fill("money");
  const text = await copiedBy(page.locator("figure.code button"));
  for (const fact of ["404 model_not_found", `${gateway.url}/v1/v1/messages`, "Chat 1", "money", alice.name]) {
    assert.ok(text.includes(fact), fact);
  }
  assert.ok(!text.includes(alice.key));
  const mail = await page.getByRole("link", { name: "By email: help@example.com" }).getAttribute("href");
  assert.ok(mail?.startsWith("mailto:help@example.com?"));
  assert.ok(!decodeURIComponent(mail ?? "").includes(alice.key));
  assert.equal(
    await page.getByRole("link", { name: "To the support page" }).getAttribute("href"),
    "https://example.com/help",
  );
  assert.deepEqual(complaints, []);
});

test("the catalog is searched, its names are copied completely, and it says why a model cannot be used", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "models");
  await settledPage(page);
  await page.getByText("8 of 8 models.").waitFor();
  await page.getByLabel("Find a model").fill("alias");
  await page.getByText("3 of 8 models.").waitFor();
  assert.equal(await copiedBy(page.getByRole("button", { name: "Copy the name chat-alias" })), "chat-alias");
  await page.getByLabel("Find a model").fill("pro-only");
  const panel = page.getByRole("region", { name: "pro-only" });
  await panel.getByText("Not usable now").waitFor();
  await panel.getByText("your plan does not include it").waitFor();
  await page.getByLabel("Only models that I can use now").check();
  await page.getByText("No model matches.").waitFor();
  await page.getByLabel("Find a model").fill("messages-1");
  await page.getByRole("region", { name: "messages-1" }).getByRole("link", { name: "Try it" }).click();
  await page.getByRole("heading", { name: "Try it" }).waitFor();
  const chosen = page.getByRole("combobox", { name: "Model" }).locator("option:checked");
  await chosen.filter({ hasText: /^messages-1$/ }).waitFor({ state: "attached" });
  assert.deepEqual(complaints, []);
});
