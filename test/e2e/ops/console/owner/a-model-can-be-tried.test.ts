/**
 * Trying a model in a real browser: the answer is streamed in each protocol, with its duration and cost, and the key is
 * temporary.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page, picture } from "../../../../rig/browser.ts";
import { type GatewayHere, startGatewayHere } from "../../../../rig/gateway.ts";
import { ownerWindow } from "./owner-pages.ts";

after(closeBrowser);

async function ask(page: Page, message: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).fill(message);
  await page.getByRole("button", { name: "Send" }).click();
}

const answers = (page: Page) => page.locator(".conversation li.assistant");
const keysOf = async (gateway: GatewayHere, tag: Parameters<GatewayHere["store"]["listKeys"]>[0]) =>
  (await gateway.store.listKeys(tag)).filter(({ name }) => name === "console");

test("each protocol answers in a stream, with first token, tokens, and the charge in the ledger", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "try?model=chat-1");
  const trials = [
    ["Chat completions", "chat-1"],
    ["Messages", "messages-1"],
    ["Responses", "responses-1"],
    ["Messages", "responses-1"],
  ] as const;
  for (const [turn, [protocol, model]] of trials.entries()) {
    await page.getByLabel("Protocol").selectOption(protocol);
    await page.getByRole("combobox", { name: "Model" }).selectOption(model);
    await ask(page, "Say something.");
    const answer = answers(page).nth(turn);
    await answer.getByText(/^0\.\d+ USD$/).waitFor();
    assert.notEqual((await answer.locator(".said").innerText()).trim(), "", model);
    assert.match(await answer.innerText(), /First token\s*[\d,]+ ms/);
    assert.match(await answer.innerText(), /Tokens\s*[1-9]\d* in, [1-9]\d* out/);
  }
  assert.equal(await answers(page).count(), 4);
  const lines = (await gateway.store.readLedger(alice.tag, 0, 100)).filter(({ kind }) => kind === "usage");
  assert.equal(lines.length, 4);
  await picture(page, "owner-try-light");
  // The shown request for other programs: with the conversation so far, without the key.
  await page.getByText("The same request as code").click();
  const curl = await page.getByLabel("curl", { exact: true }).innerText();
  assert.match(curl, /\/v1\/messages \\\n/);
  assert.match(curl, /x-api-key: \$TOLLGATE_KEY/);
  assert.match(
    await page.getByLabel("Python", { exact: true }).innerText(),
    /^import os\nfrom anthropic import Anthropic/,
  );
  assert.match(await page.getByLabel("JavaScript", { exact: true }).innerText(), /messages\.create\(\{/);
  assert.doesNotMatch(await page.content(), /sk-[0-9A-Za-z]{20}/);
  assert.deepEqual(complaints, []);
});

test("the key that the page creates expires within the hour, is stored nowhere and is revoked when the page is left", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, context, complaints } = await ownerWindow(t, gateway, alice.name, "try?model=chat-1");
  await ask(page, "Hello");
  await answers(page)
    .last()
    .getByText(/^0\.\d+ USD$/)
    .waitFor();
  const [key, ...others] = await keysOf(gateway, alice.tag);
  assert.deepEqual(others, []);
  assert.equal(key?.status, "normal");
  assert.ok((key?.expiresAtMs ?? Number.POSITIVE_INFINITY) <= Date.now() + 3_600_000);
  const { origins, cookies } = await context.storageState();
  assert.doesNotMatch(JSON.stringify([origins, cookies]), /sk-/);
  const revoked = page.waitForResponse((response) => response.url().endsWith(`/keys/${key?.id}/revoke`));
  await page.getByRole("link", { name: "Usage" }).click();
  assert.equal((await revoked).status(), 200);
  assert.equal((await keysOf(gateway, alice.tag))[0]?.status, "revoked");
  // Another group has another key; a page that is closed or reloaded revokes its key, too.
  await page.goto(`${gateway.url}/console/try?model=chat-1`);
  await ask(page, "Hello");
  await answers(page)
    .last()
    .getByText(/^0\.\d+ USD$/)
    .waitFor();
  await page.getByLabel("Group").selectOption("double-money");
  const dropped = page.waitForResponse(/\/keys\/key_[^/]+\/revoke$/);
  await ask(page, "Hello again");
  await answers(page)
    .nth(1)
    .getByText(/^0\.\d+ USD$/)
    .waitFor();
  assert.equal((await dropped).status(), 200);
  const newest = (await keysOf(gateway, alice.tag)).find(({ status }) => status === "normal");
  assert.equal(newest?.group, "double-money");
  const reached = gateway.logged(
    (line) => line.event === "audit" && line.what === "key.revoke" && line.target === newest?.id,
  );
  await page.goto("about:blank");
  await reached;
  assert.deepEqual(
    (await keysOf(gateway, alice.tag)).map(({ status }) => status),
    ["revoked", "revoked", "revoked"],
  );
  assert.deepEqual(complaints, []);
});

test("a key that arrives after the page was left is revoked, and no second key is created if the answer was lost", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "try?model=chat-1");
  let lost = 0;
  await page.route("**/accounts/*/keys", async (route) => {
    await route.fetch();
    lost++;
    await route.abort("connectionreset");
  });
  for (const times of [1, 2]) {
    const failed = page.waitForEvent("requestfailed");
    await ask(page, "Hello");
    await failed;
    assert.equal(lost, times);
    await page.getByRole("button", { name: "Send" }).waitFor();
  }
  assert.equal((await keysOf(gateway, alice.tag)).length, 1);
  await page.unroute("**/accounts/*/keys");

  await page.goto(`${gateway.url}/console/try?model=chat-1`);
  const left = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  await page.route("**/accounts/*/keys", async (route) => {
    asked.resolve();
    await left.promise;
    await route.continue();
  });
  await ask(page, "Hello");
  await asked.promise;
  const revoked = page.waitForResponse(/\/keys\/key_[^/]+\/revoke$/);
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  left.resolve();
  assert.equal((await revoked).status(), 200);
  const states = (await keysOf(gateway, alice.tag)).map(({ status }) => status).sort();
  assert.deepEqual(states, ["normal", "revoked"]);
  assert.deepEqual(complaints, []);
});

test("a refusal says why and what to do; a pasted key is used as it is", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "try?model=no-such-model");
  await ask(page, "Hello");
  await page.getByText(/not supported by any configured account in this group/).waitFor();
  await page.getByText("404, unknown_model").waitFor();
  await page.getByLabel("A key of mine").check();
  await page.getByLabel("Your key").fill(`sk-${"x".repeat(48)}`);
  await ask(page, "Hello");
  await page.getByText(/401, /).waitFor();
  await page.getByLabel("Your key").fill(alice.key);
  await page.getByRole("combobox", { name: "Model" }).selectOption("chat-1");
  const sent = page.waitForRequest(/\/v1\/chat\/completions$/);
  await ask(page, "<img src=x onerror=alert(1)>");
  await answers(page)
    .last()
    .getByText(/^0\.\d+ USD$/)
    .waitFor();
  // What was refused is not part of the next request.
  const { messages } = (await sent).postDataJSON() as { readonly messages: readonly object[] };
  assert.deepEqual(messages, [{ role: "user", content: "<img src=x onerror=alert(1)>" }]);
  assert.equal(await page.locator(".conversation img").count(), 0);
  assert.equal((await page.getByText("<img src=x onerror=alert(1)>").count()) > 0, true);
  await page.getByLabel("Output limit, tokens").fill("0");
  await page.getByText("Enter a whole number of at least 1.").waitFor();
  await page.getByLabel("Message", { exact: true }).fill("more");
  assert.equal(await page.getByRole("button", { name: "Send" }).isDisabled(), true);
  assert.deepEqual(complaints, []);
});

test("an answer that is stopped keeps its text, and a stream that breaks off is reported", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, "try?model=chat-1");
  gateway.simulator.program({ text: "one two three four", deltaChars: 4, fault: { stallAfterEvents: 3 } });
  await ask(page, "Count.");
  await answers(page).last().getByText(/^one/).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  gateway.simulator.release();
  gateway.simulator.program({ text: "one two three four", deltaChars: 4, fault: { endAfterEvents: 3 } });
  // With the keyboard alone.
  await page.getByLabel("Message", { exact: true }).focus();
  await page.keyboard.type("Count again.");
  await page.keyboard.press("Control+Enter");
  await answers(page).last().getByRole("alert").waitFor();
  assert.match(await answers(page).last().locator(".said").innerText(), /^one/);
  await page.getByRole("button", { name: "New conversation" }).click();
  assert.equal(await answers(page).count(), 0);
  assert.deepEqual(complaints, []);
});
