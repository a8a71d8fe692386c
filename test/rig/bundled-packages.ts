/**
 * Loaded first into each test process of `npm test` (`--import`). Packages of the index that `src/` and the tests
 * import are loaded from one file each (bundled.ts).
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import process from "node:process";
import { pathToFileURL } from "node:url";

const index = JSON.parse(readFileSync(process.env.TOLLGATE_TEST_PACKAGES as string, "utf8")) as Record<string, string>;
const files = new Map(Object.entries(index).map(([name, file]) => [name, pathToFileURL(file).href]));

registerHooks({
  resolve(specifier, context, next) {
    const url = files.get(specifier);
    // Imports between packages, and `require`, use the installed files.
    const isOurs = context.conditions.includes("import") && !context.parentURL?.includes("/node_modules/");
    return url !== undefined && isOurs ? { url, format: "module", shortCircuit: true } : next(specifier, context);
  },
});
