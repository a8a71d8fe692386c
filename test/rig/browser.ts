/** A real Chromium, driven by playwright-core. Only this file imports it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { TestContext } from "node:test";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { browserProgram, CHROMIUM, ensureSystemPackages } from "./system-packages.ts";

export type { BrowserContext, Locator, Page };

/**
 * The maximum time of a page for one step. Not a limit of what is tested: it only lets a test that hangs say at which step, before
 * the runner ends it (TEST_TIMEOUT_MS in test/run.ts).
 */
const STEP_MS = 200_000;

let running: Promise<Browser> | undefined;

/** One browser for all tests of a process. Each test has its own context. */
async function theBrowser(): Promise<Browser> {
  ensureSystemPackages([CHROMIUM]);
  running ??= chromium.launch({ executablePath: browserProgram(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return running;
}

/** Closes the browser. For an `after` hook of each file that opens one. */
export async function closeBrowser(): Promise<void> {
  await (await running)?.close();
  running = undefined;
}

export interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the page has reported: errors, and violations of its content security policy. */
  readonly complaints: readonly string[];
}

interface WindowOptions {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  readonly language?: string;
}

/** A window without cookies, closed when the test ends. */
export async function openWindow(t: TestContext, options: WindowOptions = {}): Promise<Window> {
  const { width = 1280, height = 900, dark = false, language = "en" } = options;
  const context = await (await theBrowser()).newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    locale: language,
    timezoneId: "UTC",
    permissions: ["clipboard-read", "clipboard-write"],
    reducedMotion: "reduce",
  });
  t.after(() => context.close());
  context.setDefaultTimeout(STEP_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The browser logs a status above 399 itself, and the page reports it in its own text.
    const isAnswer = /^Failed to load resource/.test(message.text());
    if (message.type() === "error" && !isAnswer) complaints.push(message.text());
  });
  return { context, page, complaints };
}

/** Saves a picture among the artefacts of a run, if it has any ($TOLLGATE_ARTEFACTS). */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.TOLLGATE_ARTEFACTS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
