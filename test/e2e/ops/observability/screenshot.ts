/** A page as a PNG, by headless Chromium. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browserProgram } from "../../../rig/system-packages.ts";

const QUIET =
  "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
const TIMEOUT_MS = 60_000;

/** @param size of the window in pixels, as `1350,1500`. */
export function screenshot(page: string, picture: string, size: string): void {
  const profile = mkdtempSync(join(tmpdir(), "tollgate-chromium-"));
  const where = [`--user-data-dir=${profile}`, `--window-size=${size}`, `--screenshot=${picture}`, `file://${page}`];
  try {
    // The kernel refuses a sandbox inside a container that runs as root.
    const how = ["--headless", "--no-sandbox", "--hide-scrollbars", ...QUIET.split(" ")];
    execFileSync(browserProgram(), [...how, ...where], { stdio: "ignore", timeout: TIMEOUT_MS });
  } finally {
    rmSync(profile, { recursive: true, force: true });
  }
}
