/** The words of a chart. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

test("charts are in the language of the page", async (t) => {
  const { page, open } = await openOperator(t, { language: "zh-CN" });
  await open("");
  const legend = page.locator(".chart .u-legend").first();
  await legend.waitFor();
  assert.match(await legend.innerText(), /^时间/);
});
