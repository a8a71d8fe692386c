/** A gateway with an operator who has signed in to its console in a real browser. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { openWindow, type Page, picture, type Window } from "../../../../rig/browser.ts";
import { type GatewayHere, startGatewayHere } from "../../../../rig/gateway.ts";
import { assertAccessible } from "../accessible.ts";

export interface OperatorWorld extends Window {
  readonly here: GatewayHere;
  readonly token: string;
  /** Calls the admin API as a program does. */
  readonly admin: (method: string, path: string, body?: object) => Promise<Record<string, unknown>>;
  /** Opens a page of the console. */
  readonly open: (path: string) => Promise<void>;
}

type Options = Parameters<typeof openWindow>[1] & {
  readonly gateway?: Parameters<typeof startGatewayHere>[0];
};

/** Starts the gateway and signs in. */
export async function openOperator(t: TestContext, { gateway, ...window }: Options = {}): Promise<OperatorWorld> {
  const here = await startGatewayHere(gateway);
  t.after(() => here.close());
  const opened = await openWindow(t, window);
  const token = here.gateway.adminToken;
  await opened.page.goto(`${here.adminUrl}/console/`);
  await signIn(opened.page, token);
  return {
    ...opened,
    here,
    token,
    admin: (method, path, body) => askAdmin(here, method, path, body),
    async open(path) {
      await opened.page.goto(`${here.adminUrl}/console/${path}`);
    },
  };
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.locator("input[type=password]").fill(token);
  await page.locator("main.sign-in button").click();
  await page.locator("#menu").waitFor({ state: "attached" });
}

async function askAdmin(here: GatewayHere, method: string, path: string, body?: object) {
  const response = await fetch(`${here.adminUrl}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${here.gateway.adminToken}`,
      connection: "close",
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** Resolves when the page has loaded all that it shows. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await page.locator("main:not(:has([aria-busy=true]))").waitFor();
}

/** Asserts that the page has no serious accessibility problem and is no wider than the window. */
export async function assertUsable(page: Page, name: string): Promise<void> {
  await assertAccessible(page, name);
  await assertFits(page, name);
}

/** Whether the page is no wider than its window; saves a picture of it. */
export async function assertFits(page: Page, name: string): Promise<void> {
  const wide = Number(
    await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
  );
  assert.ok(wide <= 0, `${name} is ${wide} px wider than the window`);
  assert.deepEqual(await page.evaluate(OVERLAPPED), [], `${name}: cells that are aligned with their titles`);
  await picture(page, `operator-${name}`);
}

/** On a narrow page the title of a cell is before its content. */
const OVERLAPPED = `(() => {
  if (innerWidth > 760) return [];
  const range = document.createRange();
  return [...document.querySelectorAll("main td[data-title]")].filter((cell) => {
    const { left, width } = cell.getBoundingClientRect();
    range.selectNodeContents(cell);
    return range.getClientRects().length > 0 && range.getBoundingClientRect().left < left + width * 0.36;
  }).map((cell) => cell.outerHTML);
})()`;

/** Sends a request of a client that is charged. @returns its id. */
export async function chat(here: GatewayHere, key: string, model = "chat-1"): Promise<string> {
  const answer = await fetch(`${here.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model, stream: true, max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
  });
  await answer.text();
  const id = answer.headers.get("x-request-id") ?? "";
  await here.requestEnd(id);
  return id;
}

/** Opens a form by its button, fills it in and sends it. */
export async function write(page: Page, button: string, typed: Readonly<Record<string, string>> = {}): Promise<void> {
  await page.getByRole("button", { name: button, exact: true }).click();
  const dialog = page.getByRole("dialog");
  for (const [label, value] of Object.entries(typed)) {
    const field = dialog.getByLabel(label, { exact: true });
    if ((await field.evaluate((element) => element.nodeName)) === "SELECT") await field.selectOption(value);
    else await field.fill(value);
  }
  await dialog.getByRole("button", { name: button, exact: true }).click();
}
