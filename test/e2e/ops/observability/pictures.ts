/**
 * `npm run pictures`: a PNG beside each page that the tests left in $TOLLGATE_ARTEFACTS, by headless Chromium. Grafana
 * itself is in none of the package registries that the test machine may use, so these are the pictures to look at.
 */
import { globSync } from "node:fs";
import { join, resolve } from "node:path";
import { CHROMIUM, ensureSystemPackages } from "../../../rig/system-packages.ts";
import { screenshot } from "./screenshot.ts";

ensureSystemPackages([CHROMIUM]);
const folder = resolve(process.env.TOLLGATE_ARTEFACTS ?? "artefacts");
const pages = globSync(join(folder, "*.html"));
if (pages.length === 0) throw new Error("There is no page to draw: run the tests with TOLLGATE_ARTEFACTS first.");
for (const page of pages) {
  const picture = page.replace(/\.html$/, ".png");
  screenshot(page, picture, "1350,2100");
  console.log(`${picture}`);
}
