/** Signed-in owners: over HTTP as their pages do, and in a real browser. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { openWindow, type Page, type Window } from "../../../../rig/browser.ts";
import type { GatewayHere } from "../../../../rig/gateway.ts";
import { assertAccessible } from "../accessible.ts";

export interface OwnerAnswered {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape and fail on the wrong one.
  readonly json: any;
}

export type OwnerAsk = (method: string, path: string, body?: object) => Promise<OwnerAnswered>;

/** A link that signs one person in to the console of an account. */
export async function invitationTo(gateway: GatewayHere, name: string): Promise<string> {
  const response = await fetch(`${gateway.adminUrl}/admin/v1/accounts/${name}/invitations`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.gateway.adminToken}`, connection: "close" },
  });
  assert.equal(response.status, 201);
  return ((await response.json()) as { readonly link: string }).link;
}

const HEADERS = { "x-tollgate-console": "1", "content-type": "application/json", connection: "close" };

/** Signs in over HTTP. @returns the cookie, as a browser sends it. */
export async function cookieOf(gateway: GatewayHere, name: string): Promise<string> {
  const token = new URL(await invitationTo(gateway, name)).hash.slice(1);
  const entered = await fetch(`${gateway.url}/console/api/sign-in/link`, {
    method: "POST",
    headers: HEADERS,
    body: JSON.stringify({ token }),
  });
  assert.equal(entered.status, 200);
  return (entered.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

/** Signs in over HTTP. @returns a function that calls the console's API as this owner. */
export async function signIn(gateway: GatewayHere, name: string): Promise<OwnerAsk> {
  const cookie = await cookieOf(gateway, name);
  return async (method, path, body) => {
    const response = await fetch(`${gateway.url}/console/api${path}`, {
      method,
      headers: { ...HEADERS, cookie },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, json: text.startsWith("{") ? JSON.parse(text) : {} };
  };
}

/** A window of an owner who has signed in, on the page at `path` (`usage?span=7`). */
export async function ownerWindow(
  t: TestContext,
  gateway: GatewayHere,
  name: string,
  path: string,
  options: Parameters<typeof openWindow>[1] = {},
): Promise<Window> {
  const link = await invitationTo(gateway, name);
  const opened = await openWindow(t, options);
  await opened.page.goto(link);
  await opened.page.locator("form button.main").click();
  await opened.page.locator("nav a[aria-current]").first().waitFor({ state: "attached" });
  await opened.page.goto(`${gateway.url}/console/${path}`);
  return opened;
}

/** Sends a request to a model and waits until it is charged. @returns the request's id. */
export async function spend(gateway: GatewayHere, key: string, model = "chat-1", text = "Hello"): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: text }], max_tokens: 50 }),
  });
  await response.text();
  assert.equal(response.status, 200);
  const id = response.headers.get("x-request-id") as string;
  await gateway.requestEnd(id);
  return id;
}

/** Resolves when the page has no pending request. */
export async function settledPage(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await page.locator("main:not(:has([aria-busy=true]))").waitFor();
}

/** Whether the page is wider than its window. */
export async function assertFits(page: Page, about: string): Promise<void> {
  await settledPage(page);
  const beyond = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
  assert.equal(beyond, 0, `${about} does not fit into its window`);
}

/** Asserts the same, and that axe finds nothing serious. */
export async function assertSound(page: Page, about: string, rules: "all" | "colours" = "all"): Promise<void> {
  await assertFits(page, about);
  await assertAccessible(page, about, rules);
}
