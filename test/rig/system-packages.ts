/**
 * Programs that tests run for real and that come from the system, not from npm. Missing ones are installed if possible.
 * Otherwise the run fails and names them; a test with a real server is never skipped silently.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { delimiter, join } from "node:path";

interface SystemPackage {
  /** The name of the Debian package. */
  readonly name: string;
  /** The package to use if the system has none of that name. */
  readonly instead?: string;
  readonly present: () => boolean;
}

const pathOf = (program: string): string | undefined =>
  [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"]
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
const onPath = (program: string) => () => pathOf(program) !== undefined;

/** Debian has `venv` in a separate package. A Python from elsewhere includes it. */
function canMakeVenv(): boolean {
  return spawnSync("python3", ["-c", "import ensurepip, venv"], { stdio: "ignore" }).status === 0;
}

/** Chromium without a desktop takes 40 % less CPU time for the same pages. Older systems have only the other one. */
const BROWSERS = ["chromium-headless-shell", "chromium"] as const;

/** The browser of the console's tests, which also draws the dashboards' pictures. */
export const CHROMIUM: SystemPackage = {
  name: BROWSERS[0],
  instead: BROWSERS[1],
  present: () => BROWSERS.some((program) => pathOf(program) !== undefined),
};

/** The path of the program of `CHROMIUM`. @throws Error if it is missing. */
export function browserProgram(): string {
  const path = BROWSERS.map(pathOf).find((one) => one !== undefined);
  if (path === undefined) throw new Error(`Neither of ${BROWSERS.join(", ")} is on the path.`);
  return path;
}

const PACKAGES: readonly SystemPackage[] = [
  { name: "redis-server", present: onPath("redis-server") },
  { name: "redis-sentinel", present: onPath("redis-sentinel") },
  { name: "nginx", present: onPath("nginx") },
  // Its package contains promtool.
  { name: "prometheus", present: onPath("promtool") },
  { name: "libfaketime", present: () => globSync("/usr/lib/*/faketime/libfaketime.so.1").length > 0 },
  { name: "openssl", present: onPath("openssl") },
  // deploy/drain.sh uses it to talk to Envoy.
  { name: "curl", present: onPath("curl") },
  // The shells, besides bash, for which `tollgate completion` writes, and the formatter of its manual page.
  { name: "zsh", present: onPath("zsh") },
  { name: "fish", present: onPath("fish") },
  { name: "groff", present: onPath("groff") },
  CHROMIUM,
  // Envoy comes as a Python wheel; see envoy-program.ts.
  { name: "python3-venv", present: canMakeVenv },
];

/** Installs what is missing, or throws an error that names it and the command that installs it. */
export function ensureSystemPackages(wanted: readonly SystemPackage[] = PACKAGES): void {
  const missing = wanted.filter((each) => !each.present());
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => name);
  console.log(`Installing what the tests need: ${names.join(", ")}`);
  try {
    apt("update");
    const install = (packages: readonly string[]) => apt("install", "-y", "--no-install-recommends", ...packages);
    try {
      install(names);
    } catch (error) {
      if (missing.every(({ instead }) => instead === undefined)) throw error;
      install(missing.map(({ name, instead = name }) => instead));
    }
  } catch (error) {
    const wanted = missing.map(({ name, instead }) => (instead === undefined ? name : `${name} (or ${instead})`));
    const command = `apt-get install -y ${names.join(" ")}`;
    throw new Error(`The tests need the Debian packages ${wanted.join(", ")}. Install them with: ${command}`, {
      cause: error,
    });
  }
}

function apt(...args: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  execFileSync("apt-get", ["-q", ...args], { stdio: ["ignore", "ignore", "inherit"], env });
}
