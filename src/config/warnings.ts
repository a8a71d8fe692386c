/** What a good configuration may surprise its users with: `tollgate check` says it, and the gateway starts all the same. */
import type { Catalog } from "../values/catalog.ts";

/** @returns one sentence for each thing, in the order of the file. */
export function warningsOf({ models }: Catalog): readonly string[] {
  const warnings: string[] = [];
  for (const { name, routes, price } of models.values()) {
    if (price.tools.size > 0 || !routes.some((route) => route.protocol === "responses")) continue;
    warnings.push(
      `models.${name}.price.tools has no tool: hosted tools that clients offer (Codex: web_search, in each request) are left out, and refused where they are demanded`,
    );
  }
  return warnings;
}
