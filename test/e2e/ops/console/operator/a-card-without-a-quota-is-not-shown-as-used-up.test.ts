/** A card without a quota is not limited in money, so the operator's pages do not say that nothing of it is left. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { testConfig } from "../../../../rig/gateway.ts";
import { openOperator } from "./world.ts";

after(closeBrowser);

for (const [language, words] of Object.entries({ en: "No quota", "zh-CN": "不限额度" })) {
  test(`a card without a quota has no amount that is left (${language})`, async (t) => {
    const cards = { endless: { plan: "pro", group: "cards", lasts: "1d" } };
    const { page, open, here, admin } = await openOperator(t, {
      language,
      gateway: { config: (places) => testConfig(places, { cards }) },
    });
    const { name } = await here.account({});
    await admin("POST", `/accounts/${name}/gifts`, { card: "endless", id: "gift" });
    await open(`accounts/${name}`);
    const row = page.getByRole("row").filter({ hasText: "endless" }).first();
    assert.equal(await row.getByRole("cell").last().innerText(), words);

    const { batch_id } = (await admin("POST", "/codes", { card: "endless", count: 1, label: "fair" })) as {
      batch_id: string;
    };
    await open(`codes/${batch_id}`);
    await page.locator(".figure").first().waitFor();
    const hints = await page.locator("dl.figures").first().innerText();
    assert.doesNotMatch(hints, /quota|额度/);
  });
}
