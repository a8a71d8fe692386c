/** A real Chromium, driven by playwright-core. The only importer of it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { TestContext } from "node:test";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { browserProgram, CHROMIUM, ensureSystemPackages } from "./system-packages.ts";

export type { BrowserContext, Page };

/** How long a page may take for a step: a slow machine's, far above what any takes. */
const STEP_MS = 20_000;

let running: Promise<Browser> | undefined;

/** One browser for all tests of a process; each has a context of its own. */
async function theBrowser(): Promise<Browser> {
  ensureSystemPackages([CHROMIUM]);
  running ??= chromium.launch({ executablePath: browserProgram(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return running;
}

/** Ends the browser; for an `after` hook of each file that opens one. */
export async function closeBrowser(): Promise<void> {
  await (await running)?.close();
  running = undefined;
}

export interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the page has complained of: errors, and violations of its content security policy. */
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
    // An answer above 399 is logged by the browser itself; the page says it in its own words.
    const isAnswer = /^Failed to load resource/.test(message.text());
    if (message.type() === "error" && !isAnswer) complaints.push(message.text());
  });
  return { context, page, complaints };
}

/** Keeps a picture among the artefacts of a run, where it has any ($TOLLGATE_ARTEFACTS). */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.TOLLGATE_ARTEFACTS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
