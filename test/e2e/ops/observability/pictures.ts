/**
 * `npm run pictures`: a PNG beside each page that the tests left in $TOLLGATE_ARTEFACTS, by headless Chromium. Grafana
 * itself is in none of the package registries that the gate may use, so this is what one looks at.
 */
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { CHROMIUM, ensureSystemPackages } from "../../../rig/system-packages.ts";

const QUIET =
  "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
const TIMEOUT_MS = 60_000;

ensureSystemPackages([CHROMIUM]);
const folder = resolve(process.env.TOLLGATE_ARTEFACTS ?? "artefacts");
const pages = globSync(join(folder, "*.html"));
if (pages.length === 0) throw new Error("There is no page to draw: run the tests with TOLLGATE_ARTEFACTS first.");
for (const page of pages) {
  const profile = mkdtempSync(join(tmpdir(), "tollgate-chromium-"));
  const picture = page.replace(/\.html$/, ".png");
  const where = [`--user-data-dir=${profile}`, "--window-size=1350,1500", `--screenshot=${picture}`, `file://${page}`];
  try {
    // A sandbox inside a container that runs as root is refused by the kernel.
    execFileSync("chromium", ["--headless", "--no-sandbox", ...QUIET.split(" "), ...where], {
      stdio: "ignore",
      timeout: TIMEOUT_MS,
    });
    console.log(`${picture}`);
  } finally {
    rmSync(profile, { recursive: true, force: true });
  }
}
