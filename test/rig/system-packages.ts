/**
 * Programs that tests run for real and that come from the system, not from npm. Missing ones are installed where that
 * is possible, else named; a test for a real server is never skipped in silence.
 */
import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { delimiter, join } from "node:path";

interface SystemPackage {
  /** The name of the Debian package. */
  readonly name: string;
  readonly present: () => boolean;
}

const onPath = (program: string) => () =>
  [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"].some((folder) =>
    existsSync(join(folder, program)),
  );

/** Debian splits `venv` off; a Python from elsewhere has it. */
function canMakeVenv(): boolean {
  return spawnSync("python3", ["-c", "import ensurepip, venv"], { stdio: "ignore" }).status === 0;
}

/** The browser of the console's tests, which also draws the pictures of the dashboards' data. */
export const CHROMIUM: SystemPackage = { name: "chromium", present: onPath("chromium") };

const PACKAGES: readonly SystemPackage[] = [
  { name: "redis-server", present: onPath("redis-server") },
  { name: "redis-sentinel", present: onPath("redis-sentinel") },
  { name: "nginx", present: onPath("nginx") },
  // Its package brings promtool.
  { name: "prometheus", present: onPath("promtool") },
  { name: "libfaketime", present: () => globSync("/usr/lib/*/faketime/libfaketime.so.1").length > 0 },
  { name: "openssl", present: onPath("openssl") },
  // deploy/drain.sh speaks to Envoy with it.
  { name: "curl", present: onPath("curl") },
  // The shells that `tollgate completion` writes for, beside bash, and what formats its manual page.
  { name: "zsh", present: onPath("zsh") },
  { name: "fish", present: onPath("fish") },
  { name: "groff", present: onPath("groff") },
  CHROMIUM,
  // Envoy comes as a Python wheel; see envoy-program.ts.
  { name: "python3-venv", present: canMakeVenv },
];

/** Installs what is missing, or throws an error that names it and the command that installs it. */
export function ensureSystemPackages(wanted: readonly SystemPackage[] = PACKAGES): void {
  const missing = wanted.filter((each) => !each.present()).map((each) => each.name);
  if (missing.length === 0) return;
  const command = `apt-get install -y ${missing.join(" ")}`;
  console.log(`Installing what the tests need: ${missing.join(", ")}`);
  try {
    const quiet: ExecFileSyncOptions = {
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    };
    execFileSync("apt-get", ["-q", "update"], quiet);
    execFileSync("apt-get", ["-q", "install", "-y", "--no-install-recommends", ...missing], quiet);
  } catch (error) {
    throw new Error(`The tests need the Debian packages ${missing.join(", ")}. Install them with: ${command}`, {
      cause: error,
    });
  }
}
