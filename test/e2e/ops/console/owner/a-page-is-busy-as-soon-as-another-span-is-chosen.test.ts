/** Sums of one span are never under the dates of another as if they were its own: the page is busy from its first frame on. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { spend, startOwnerGateway } from "./furnished-account.ts";
import { ownerWindow, settledPage } from "./owner-pages.ts";

after(closeBrowser);

/** Follows a link. @returns whether the page is busy in the first frame that it paints with another current link. */
const BUSY_AFTER = (link: string) => `new Promise((resolve) => {
  const [way] = [...document.querySelectorAll("main nav a")].filter((one) => one.textContent === ${JSON.stringify(link)});
  new MutationObserver((_, observer) => {
    if (!way.hasAttribute("aria-current")) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve(document.querySelector("main [aria-busy=true]") !== null));
  }).observe(document.body, { attributes: true, subtree: true });
  way.click();
})`;

test("the page of usage is busy in the first frame with another span", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name, key } = await gateway.account();
  await spend(gateway, key);
  const { page } = await ownerWindow(t, gateway, name, "usage?days=1");
  await settledPage(page);
  const held = Promise.withResolvers<void>();
  await page.route("**/usage?since=*", (route) => held.promise.then(() => route.continue()));
  assert.equal(await page.evaluate(BUSY_AFTER("7 days")), true);
  held.resolve();
  await settledPage(page);
});
