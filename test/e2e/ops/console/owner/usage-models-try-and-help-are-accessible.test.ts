/**
 * The pages Usage, Models, Try and Help, empty and with hostile names: they fit, axe finds nothing serious, and no
 * injected script runs.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { after } from "node:test";
import { newKey } from "../../../../../src/values/key.ts";
import { closeBrowser, picture } from "../../../../rig/browser.ts";
import { type ConfigPlaces, testConfig } from "../../../../rig/config.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { assertFits, assertSound, ownerWindow, spend } from "./owner-pages.ts";

after(closeBrowser);

const PAGES = [
  "usage",
  "usage?by=model",
  "usage?by=key",
  "usage?by=requests",
  "usage?since=2026-01-01&until=2026-03-01&by=group",
  "models",
  "try",
  "help",
  "help/errors",
  "help/request",
  "help/explain",
  "help/support",
];
const WINDOWS = {
  light: { width: 1280 },
  dark: { width: 1280, dark: true },
  narrow: { width: 360, height: 780 },
  wide: { width: 2000, dark: true },
  chinese: { width: 360, height: 780, language: "zh-CN" },
};
/** Except for colors, axe's findings do not depend on the width or the color scheme. */
const JUDGED: ReadonlyMap<string, "all" | "colours"> = new Map([
  ["light", "all"],
  ["dark", "colours"],
]);
const PICTURED: ReadonlySet<string> = new Set(["light", "dark", "narrow"]);
/** The forms in which pages of an account without data are checked. */
const EMPTY: ReadonlySet<string> = new Set(["light", "narrow"]);

/** A name that is as hostile as a catalog allows. */
const LONG_MODEL = `chat-${"w".repeat(59)}`;
const config = (places: ConfigPlaces) =>
  testConfig(places, (base) => ({
    models: { [LONG_MODEL]: base.models["chat-1"] },
    console: { support: { email: "help@example.com", url: "https://example.com/help" } },
  }));

for (const [look, options] of Object.entries(WINDOWS)) {
  test(`every page fits, is accessible and runs no injected script: ${look}`, async (t) => {
    const gateway = await startGatewayHere({ config });
    t.after(() => gateway.close());
    const [alice, nobody] = [await gateway.account(), await gateway.account({ usd: "0" })];
    const names = ["<img src=x onerror=alert(1)>", "\u200fشحن مفتاح", "👩‍👩‍👧‍👦 Team", "W".repeat(64)];
    let request = "";
    for (const name of names) {
      const key = newKey(alice.tag, randomBytes);
      await gateway.store.createKey(alice.tag, { id: key.id, hash: key.hash, group: "money", name });
      request = await spend(gateway, key.text, LONG_MODEL);
    }
    for (const [account, pages] of [
      [alice, [...PAGES, `usage/${request}`]],
      [nobody, EMPTY.has(look) ? PAGES : []],
    ] as const) {
      if (pages.length === 0) continue;
      const { page, complaints } = await ownerWindow(t, gateway, account.name, "usage", options);
      for (const path of pages) {
        await page.goto(`${gateway.url}/console/${path}`);
        const rules = JUDGED.get(look);
        const about = `${path} (${look}, ${account === alice ? "full" : "empty"})`;
        await (rules ? assertSound(page, about, rules) : assertFits(page, about));
        const name = path.replaceAll(/[^a-z]+/g, "-").replace(/-req-.*/, "-one");
        if (account === alice && path === "usage?by=key") {
          for (const one of names) await page.getByText(one).first().waitFor();
        }
        if (account === alice && PICTURED.has(look)) await picture(page, `owner-${name}-${look}`);
      }
      assert.equal(await page.locator("main img").count(), 0);
      assert.deepEqual(complaints, [], look);
    }
  });
}

/** Resolves with the time of the first contentful paint in milliseconds, even if it is still to come. */
const FIRST_PAINT = `new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint !== undefined) resolve(paint.startTime);
  }).observe({ type: "paint", buffered: true });
})`;

test("the time of the first paint is measured", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const alice = await gateway.account();
  const { page } = await ownerWindow(t, gateway, alice.name, "usage");
  const found: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    await page.reload();
    // The entry is written when a frame was shown, which on a busy machine may be after the heading is in the tree.
    found.push(await page.evaluate(FIRST_PAINT));
  }
  assert.ok(found.every((ms) => ms > 0));
  t.diagnostic(`first contentful paint, ms: ${found.map((ms) => ms.toFixed(0)).join(", ")}`);
});
