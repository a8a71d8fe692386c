/**
 * Builds one file with Node and the program: a single executable application of Node, with the scripts and their V8 code caches.
 * docs/decisions/one-file-of-code-is-the-program.md has the reasons and measurements.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import launcher from "./launcher.cjs";
import warm from "./warm.cjs";

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Makes the executable of these scripts at `output`. The Node that runs this becomes a part of it. */
export function makeExecutable(scripts: ReadonlyMap<string, string>, output: string): void {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-build-"));
  // Relative names, because Node writes them into the executable: the same sources give the same bytes in any folder.
  const node = (...args: string[]) =>
    execFileSync(process.execPath, args, { cwd: dir, stdio: ["ignore", "ignore", "inherit"] });
  try {
    for (const [name, code] of scripts) writeFileSync(join(dir, name), launcher.wrapped(code), "latin1");
    node(...warm.flags, here("warm.cjs"));
    node(here("warm.cjs"), "check");
    copyFileSync(process.execPath, join(dir, "node"));
    // Remove symbols and line numbers of Node's C++: a quarter of the file, and useful only to debug Node itself.
    execFileSync("strip", ["--strip-all", "node"], { cwd: dir });
    copyFileSync(here("launcher.cjs"), join(dir, "launcher.cjs"));
    writeFileSync(
      join(dir, "sea.json"),
      JSON.stringify({
        main: "launcher.cjs",
        executable: "node",
        output: "tollgate",
        disableExperimentalSEAWarning: true,
        // Its text is the program of a thread, too (src/config/thread/thread.ts).
        assets: { "launcher.cjs": "launcher.cjs" },
      }),
    );
    node("--build-sea", "sea.json");
    const parts = launcher.names
      .flatMap((name) => [name, `${name}.cache`])
      .map((file) => readFileSync(join(dir, file)));
    appendFileSync(join(dir, "tollgate"), launcher.appended(parts));
    mkdirSync(dirname(resolve(output)), { recursive: true });
    copyFileSync(join(dir, "tollgate"), output);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
