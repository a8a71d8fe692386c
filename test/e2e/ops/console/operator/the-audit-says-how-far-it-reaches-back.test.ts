/** After a restart the audit begins anew: without a sentence about that, its few lines look like all that was ever done. */
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

test("the page of the audit says that it begins with the gateway, and where older lines are", async (t) => {
  const { page, open } = await openOperator(t);
  await open("records");
  await page.locator("tbody tr").first().waitFor();
  await page.getByText("The newest writes since this gateway started. Older ones are in its log.").waitFor();
});
