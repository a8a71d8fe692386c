/**
 * Loaded first into each test process of `npm test` (`--import`): what `src/` and the tests import of the packages in the
 * index comes from one file each (bundled.ts).
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
    // Packages among themselves, and `require`, go by what is installed.
    const isOurs = context.conditions.includes("import") && !context.parentURL?.includes("/node_modules/");
    return url !== undefined && isOurs ? { url, format: "module", shortCircuit: true } : next(specifier, context);
  },
});
