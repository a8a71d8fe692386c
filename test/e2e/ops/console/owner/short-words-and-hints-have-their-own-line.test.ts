/** A short word in a table is not broken, and the hint above a choice of groups does not share a line with a group. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { startOwnerGateway } from "./furnished-account.ts";
import { admin, at, settled, signIn } from "./signed-in.ts";

after(closeBrowser);

/** On how many lines the first text of each cell of the first column is. */
const LINES = `[...document.querySelectorAll("main tbody tr td:first-child")].map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode());
  return range.getClientRects().length;
})`;

for (const language of ["en", "zh-CN"]) {
  test(`a short name of a card is on one line, and so is a hint (${language})`, async (t) => {
    const cards = { month: { plan: "pro", group: "cards", lasts: "30d", starts: "after_previous" } } as const;
    const gateway = await startOwnerGateway({ cards });
    t.after(() => gateway.close());
    const { name } = await gateway.account({});
    for (const id of ["1", "2"]) await admin(gateway, "POST", `/accounts/${name}/gifts`, { card: "month", id });
    const { page } = await signIn(t, gateway, name, { width: 1_200, language });
    await page.goto(at(gateway, "cards"));
    await settled(page);
    await page.locator("main tbody tr").nth(1).waitFor();
    assert.deepEqual(await page.evaluate(LINES), [1, 1]);

    await page.goto(at(gateway, "keys/new"));
    const hint = (await page.locator("fieldset .hint").boundingBox()) ?? assert.fail("no hint");
    const group = (await page.locator("fieldset .option").first().boundingBox()) ?? assert.fail("no group");
    assert.ok(group.y >= hint.y + hint.height, `the hint is at ${JSON.stringify(hint)}, a group at ${group.y}`);
  });
}
