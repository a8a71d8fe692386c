/**
 * `npm run build`: builds the two installable forms of Tollgate from the sources as they are.
 *
 *     node build/build.ts [--out DIR] [--build NAME] [--only executable|package]
 *
 * `DIR/tollgate` is an executable for Linux x64. `DIR/tollgate-VERSION.tgz` is an npm package, for any system with a Node that satisfies
 * `engines`. The default folder is `dist`. The same sources give the same bytes. `NAME` is the build in `--version --json`; default: the
 * commit or a digest.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { bundle } from "./bundle.ts";
import { makeExecutable } from "./executable.ts";
import { noticesOf } from "./notices.ts";
import { makePackage } from "./package.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const { values } = parseArgs({
  options: { out: { type: "string", default: "dist" }, build: { type: "string" }, only: { type: "string" } },
});
const { out, only } = values;

const { scripts, build, packages } = await bundle(ROOT, values.build);
const notices = noticesOf(packages);
mkdirSync(out, { recursive: true });
console.log(`build ${build}`);
if (only !== "executable") say(makePackage(ROOT, scripts, notices, out));
if (only !== "package") {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error("the executable is for Linux x64 and is made there; --only package makes the package");
  }
  writeFileSync(join(out, "THIRD-PARTY.txt"), notices);
  const file = join(out, "tollgate");
  makeExecutable(scripts, file);
  // Not with --only: compressing takes a third of the build's time.
  const compressed = () => `, ${megabytes(gzipSync(readFileSync(file), { level: 6 }).length)} compressed`;
  say(file, only === undefined ? compressed() : "");
}

function say(file: string, more = ""): void {
  console.log(`${file}  ${megabytes(statSync(file).size)}${more}`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
