/** A browser window of an owner who has signed in, and checks that apply to every page. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { openWindow, type Page, picture, type Window } from "../../../../rig/browser.ts";
import type { GatewayHere } from "../../../../rig/gateway.ts";
import { assertAccessible } from "../accessible.ts";

/** Calls the admin API. */
export async function admin<T>(gateway: GatewayHere, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${gateway.adminUrl}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${gateway.gateway.adminToken}`,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** Opens a window and signs in as an account. */
export async function signIn(
  t: TestContext,
  gateway: GatewayHere,
  account: string,
  options: Parameters<typeof openWindow>[1] = {},
): Promise<Window> {
  const window = await openWindow(t, options);
  await enter(window.page, gateway, account);
  return window;
}

/** Signs in, or in again, by a new link. */
export async function enter(page: Page, gateway: GatewayHere, account: string): Promise<void> {
  const { link } = await admin<{ readonly link: string }>(gateway, "POST", `/accounts/${account}/invitations`);
  await page.goto(link);
  await page.locator("main form button").click();
  await page.getByRole("heading", { level: 1, name: /^(?:Overview|概览)$/ }).waitFor();
}

/** The base address of the console's pages. */
export function at(gateway: GatewayHere, path: string): string {
  return `${gateway.url}/console/${path}`;
}

/** Resolves when the page has no pending request. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await page.locator("main:not(:has([aria-busy=true]))").waitFor();
}

const WIDER = `(() => {
  const room = document.documentElement.clientWidth;
  const isOut = (one) => one.getBoundingClientRect().right > room + 1 && !one.closest(".scroll, pre, .uplot");
  const isScrolled = (one) => one.matches(".scroll") && one.scrollWidth > one.clientWidth;
  const wide = [...document.querySelectorAll("body *")].filter((one) => isOut(one) || isScrolled(one));
  return { wide: wide.map((one) => one.outerHTML.slice(0, 120)), all: document.documentElement.scrollWidth - room };
})()`;

/** Asserts that nothing is wider than the window, and no table wider than its container. */
export async function assertFits(page: Page): Promise<void> {
  const { wide, all } = await page.evaluate<{ readonly wide: readonly string[]; readonly all: number }>(WIDER);
  assert.deepEqual(wide, []);
  assert.ok(all <= 0, `the page is ${all} px too wide`);
}

/** The forms in which each page is checked. */
const LOOKS = [
  { name: "light", width: 1280 },
  { name: "dark", width: 1280, dark: true },
  { name: "narrow", width: 360, height: 800 },
  { name: "wide", width: 2000, height: 1200 },
  { name: "chinese", width: 360, height: 800, language: "zh-CN", dark: true },
] as const;

const PICTURED: ReadonlySet<string> = new Set(["light", "dark", "narrow"]);

/**
 * Checks a page in light, dark, narrow, wide and Chinese: it fits, axe finds nothing serious, and a picture is saved.
 */
export async function lookAt(
  t: TestContext,
  gateway: GatewayHere,
  account: string,
  pages: readonly { readonly name: string; readonly path: string }[],
): Promise<void> {
  for (const { name: look, ...options } of LOOKS) {
    const { page, complaints } = await signIn(t, gateway, account, options);
    for (const { name, path } of pages) {
      await page.goto(at(gateway, path));
      await settled(page);
      await assertFits(page);
      // Except for colors, axe's findings do not depend on the width or the color scheme.
      if (look === "light") await assertAccessible(page, name);
      if (look === "dark") await assertAccessible(page, name, "colours");
      if (PICTURED.has(look)) await picture(page, `console-owner-${name}-${look}`);
    }
    assert.deepEqual(complaints, [], look);
  }
}
