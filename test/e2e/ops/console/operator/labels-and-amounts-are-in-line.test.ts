/** Rows of fields have their labels on one line, amounts their points below each other, and buttons a distance. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, type Page } from "../../../../rig/browser.ts";
import { chat, openOperator } from "./world.ts";

after(closeBrowser);

const tops = (page: Page, selector: string) =>
  page
    .locator(selector)
    .evaluateAll((all) =>
      all.map((one) => (one as unknown as { getBoundingClientRect(): { top: number } }).getBoundingClientRect().top),
    );

/** The places of the points of the amounts in a column, and whether each amount is on one line. */
const POINTS = (column: number) => `(() => {
  const range = document.createRange();
  return [...document.querySelectorAll("main tbody tr td:nth-child(${column})")].map((cell) => {
    const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
    const at = text.data.indexOf(".");
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    const point = Math.round(range.getBoundingClientRect().left);
    range.selectNodeContents(text);
    return { point, lines: range.getClientRects().length };
  });
})()`;

for (const language of ["en", "zh-CN"]) {
  test(`labels, fields and buttons of a row are in line (${language})`, async (t) => {
    const { page, open, here } = await openOperator(t, { width: 1_440, language });
    const { key } = await here.account({ usd: "5" });
    await chat(here, key);
    for (const path of ["reconcile", "accounts", "records/ledger"]) {
      await open(path);
      await page.locator("main .filters button").waitFor();
      assert.equal(new Set(await tops(page, ".filters label")).size, 1, `${path}: labels`);
      const fields = await tops(page, ".filters :is(input, select)");
      assert.equal(new Set(fields).size, 1, `${path}: fields`);
      const [button = 0] = await tops(page, ".filters > button");
      assert.ok(
        Math.abs(button - (fields[0] ?? 0)) < 2,
        `${path}: the button at ${button}, the fields at ${fields[0]}`,
      );
    }
    await open("reconcile");
    await page.locator(".scroll + p button").waitFor();
    const distance = await page.evaluate(
      `document.querySelector(".scroll + p button").getBoundingClientRect().top - document.querySelector("main table").getBoundingClientRect().bottom`,
    );
    assert.ok(Number(distance) >= 8, `the button is ${distance} px below the table`);
  });
}

test("amounts of a column have their points below each other, and none is broken into two lines", async (t) => {
  const { page, open, here, admin } = await openOperator(t, { width: 1_440 });
  const { name, key } = await here.account({ usd: "123456.789" });
  for (const [id, usd] of Object.entries({ a: "0.5", b: "0.000000001", c: "1250" }))
    await admin("POST", `/accounts/${name}/topups`, { usd, id });
  await chat(here, key);
  await open(`records/ledger?account=${name}`);
  await page.locator("tbody tr").nth(4).waitFor();
  for (const column of [5, 6]) {
    const cells = (await page.evaluate(POINTS(column))) as readonly {
      readonly point: number;
      readonly lines: number;
    }[];
    assert.equal(cells.length, 5);
    assert.deepEqual([...new Set(cells.map(({ lines }) => lines))], [1]);
    assert.equal(new Set(cells.map(({ point }) => point)).size, 1, JSON.stringify(cells));
  }
  // What is read aloud and copied is the amount alone.
  assert.equal(
    (await page.locator("tbody tr").nth(1).locator("td").nth(4).textContent())?.trim(),
    "+1\u202f250.00 USD",
  );
});
