/** What the pages of the operator put together from the gateway's answers, in Chinese. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, openWindow } from "../../../../rig/browser.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

test("the audit counts the entries of a list", async (t) => {
  const { here, open, page, admin, complaints } = await openOperator(t, { language: "zh-CN" });
  const { keyId } = await here.account();
  await admin("PUT", `/keys/${keyId}/limits`, { models: ["chat-1", "messages-*"] });
  await open("records");
  await page.getByText("模型：2 项", { exact: true }).waitFor();
  assert.deepEqual(complaints, []);
});

test("labels follow a Chinese colon", async (t) => {
  const { here, open, page, admin, complaints } = await openOperator(t, { language: "zh-CN" });
  const { name } = await here.account();
  await admin("PUT", `/accounts/${name}/labels`, { labels: { team: "red" } });
  await open(`accounts/${name}`);
  await page.getByText("标签：", { exact: false }).filter({ hasText: "team=red" }).waitFor();
  assert.deepEqual(complaints, []);
});

test("an account that does not exist is not taken for the account of another session", async (t) => {
  const { open, page } = await openOperator(t, { language: "zh-CN" });
  await open("accounts/nobody");
  await page.getByText("请检查名称。").first().waitFor();
});

test("a wrong admin token is reported without a repetition of where the token is", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { page } = await openWindow(t, { language: "zh-CN" });
  await page.goto(`${here.adminUrl}/console/`);
  await page.getByLabel("管理令牌").fill("not-the-admin-token");
  await page.getByRole("button", { name: "登录" }).click();
  assert.equal(await page.getByRole("alert").innerText(), "这不是此网关的管理令牌。");
});
