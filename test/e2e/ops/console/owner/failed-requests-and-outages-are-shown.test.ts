/**
 * What the pages Usage and Try show if a request cost nothing, the gateway is unreachable, or the user is no longer
 * signed in.
 */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { card, sell } from "../../../money/cards/rig.ts";
import { invitationTo, ownerWindow, settledPage, signIn, spend } from "./owner-pages.ts";

after(closeBrowser);

test("a request that failed at its upstream is shown with its attempts, and without what it cost the operator", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  gateway.simulator.program({ fault: { endAfterEvents: 1 } }, { times: 4 });
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${alice.key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({
      model: "chat-1",
      stream: true,
      max_tokens: 50,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
  await response.text();
  const id = response.headers.get("x-request-id") as string;
  await gateway.requestEnd(id);
  const lines = (await gateway.store.readLedger(alice.tag, 0, 10)).map(({ kind }) => kind);
  assert.ok(lines.includes("absorbed") && !lines.includes("usage"), String(lines));
  const ask = await signIn(gateway, alice.name);
  const answer = await ask("GET", `/requests/${id}`);
  assert.deepEqual([answer.status, answer.json.outcome, answer.json.line], [200, "not_charged", null]);
  assert.match(answer.json.cause, /^upstream_/);
  assert.doesNotMatch(answer.text, /usd|cost|up-chat/);
  assert.deepEqual(
    (await ask("GET", "/lines")).json.items.map(({ kind }: { kind: string }) => kind),
    ["topup"],
  );
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, `usage/${id}`);
  await page.getByRole("heading", { name: "Not charged" }).waitFor();
  await page.getByText("nothing is charged").waitFor();
  assert.deepEqual(complaints, []);
});

test("if a card without a quota pays, the page says that single requests are not charged", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account({ group: "cards" });
  const [code] = await sell(gateway.store, 1, card({ quota: undefined }));
  assert.ok(code);
  assert.equal((await gateway.store.redeem({ hash: code.hash, tag: alice.tag })).outcome, "redeemed");
  const id = await spend(gateway, alice.key);
  const { page, complaints } = await ownerWindow(t, gateway, alice.name, `usage/${id}`);
  await page.getByText("The time card has no quota, so single requests are not charged.").waitFor();
  await page.getByText(`Time card ${code.id}`).waitFor();
  await page.goto(`${gateway.url}/console/usage?by=requests`);
  await settledPage(page);
  await page.getByText(`paid by the time card ${code.id}`).waitFor();
  assert.deepEqual(complaints, []);
});

test("a user who signed out in another tab is signed out here at the next request, and returns here after signing in", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page, context, complaints } = await ownerWindow(t, gateway, alice.name, "usage");
  await settledPage(page);
  const other = await context.newPage();
  await other.goto(`${gateway.url}/console/help`);
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByText("You are not signed in.").waitFor();
  await page.getByRole("link", { name: "90 days" }).click();
  await page.getByText("Your session has ended. Sign in again to return to this page.").waitFor();
  await page.goto(await invitationTo(gateway, alice.name));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Models" }).click();
  await page.getByRole("heading", { name: "Models" }).waitFor();
  assert.deepEqual(complaints, []);
});

test("an unreachable gateway is reported, and nothing that was shown is lost", async (t) => {
  const gateway = await startGatewayHere();
  let isOpen = true;
  t.after(() => isOpen && gateway.close());
  const alice = await gateway.account();
  await spend(gateway, alice.key);
  const { page } = await ownerWindow(t, gateway, alice.name, "usage?by=requests");
  await settledPage(page);
  const tried = await ownerWindow(t, gateway, alice.name, "try?model=chat-1");
  await tried.page.getByRole("combobox", { name: "Group" }).waitFor();
  isOpen = false;
  await gateway.close();
  await page.getByRole("link", { name: "Day", exact: true }).click();
  await page.getByText("The gateway does not answer.").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The gateway does not answer.").waitFor();
  await tried.page.getByLabel("Message", { exact: true }).fill("Hello");
  await tried.page.getByRole("button", { name: "Send" }).click();
  await tried.page.getByText("The gateway does not answer.").waitFor();
  assert.equal(await tried.page.getByLabel("Message", { exact: true }).inputValue(), "Hello");
});
