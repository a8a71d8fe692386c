/** From the page of a key, an operator gets to _Explain_ with the key's id filled in, in the language of the page. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { assertUsable, openOperator } from "./world.ts";

after(closeBrowser);

test("a request of the key is explained, and its decisions are in Chinese", async (t) => {
  const { here, open, page, complaints } = await openOperator(t, { language: "zh-CN", width: 360 });
  const { name, keyId } = await here.account({ usd: "0" });
  await open(`accounts/${name}/${keyId}`);
  await page.getByRole("main").getByRole("link", { name: "请求解释" }).click();
  await page.getByRole("heading", { level: 1, name: "请求解释" }).waitFor();
  assert.equal(await page.getByLabel("密钥编号").inputValue(), keyId);
  await page.getByLabel("模型", { exact: true }).fill("chat-1");
  await page.getByRole("button", { name: "解释", exact: true }).click();
  const said = page.getByText("余额不足以支付此请求的最低费用。");
  await said.first().waitFor();
  assert.equal(
    await said.last().getAttribute("title"),
    "The balance does not cover the least that this request can cost.",
  );
  await assertUsable(page, "explained-chinese");
  assert.deepEqual(complaints, []);
});
