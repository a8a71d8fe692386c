/** What axe finds on a page of the console. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "../../../rig/browser.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}
interface Axe {
  run(context: unknown, options: object): Promise<{ readonly violations: readonly Finding[] }>;
}

/**
 * Asserts that axe finds nothing serious or critical. @param rules `colours`: only the rule about colors, for a page
 * that was already checked in other colors.
 */
export async function assertAccessible(page: Page, about: string, rules: "all" | "colours" = "all"): Promise<void> {
  // Through the debugger, because the page's own policy blocks foreign scripts.
  await page.evaluate(AXE);
  const options = { resultTypes: ["violations"], ...(rules === "colours" && { runOnly: ["color-contrast"] }) };
  const found = await page.evaluate(async (how: object) => {
    const { axe, document } = globalThis as unknown as { axe: Axe; document: unknown };
    return (await axe.run(document, how)).violations;
  }, options);
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  const said = serious.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => html + failureSummary).join("\n")}`,
  );
  assert.deepEqual(said, [], about);
}
