/** Builds the npm package: the bundle for the user's own Node, without dependencies. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import launcher from "./launcher.cjs";

/** Files of the repository that are packed unchanged. */
const FILES = ["README.md", "LICENSE", "CHANGELOG.md", "tollgate.example.yaml", "tollgate.schema.json"];

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: { readonly node: string };
}

/**
 * Stages `out/package` and packs it.
 * @returns the path of the tarball.
 */
export function makePackage(root: string, scripts: ReadonlyMap<string, string>, notices: string, out: string): string {
  const dir = join(out, "package");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, "bin"), { recursive: true });
  const { name, version, description, license, engines } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as Manifest;
  // Private like the repository, because a mistaken `npm publish` cannot be undone.
  const manifest = {
    name,
    version,
    description,
    license,
    private: true,
    engines,
    bin: { tollgate: "bin/tollgate.cjs" },
  };
  const files = { "package.json": `${JSON.stringify(manifest, null, 2)}\n`, "THIRD-PARTY.txt": notices };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
  for (const file of FILES) copyFileSync(join(root, file), join(dir, file));
  writeFileSync(join(dir, "bin/tollgate.cjs"), startOf(engines.node), { mode: 0o755 });
  for (const [name, code] of scripts) writeFileSync(join(dir, "bin", name), code);
  const args = ["pack", "--silent", "--pack-destination", resolve(out)];
  const packed = execFileSync("npm", args, { cwd: dir, encoding: "utf8" });
  return join(out, packed.trim());
}

/** The start script. It checks the version of Node: an older one would fail with a syntax error, and npm only warns. */
function startOf(engines: string): string {
  const least = engines.replace(/^>=/, "");
  return `#!/usr/bin/env node
const least = "${least}".split(".").map(Number);
const here = process.versions.node.split(".").map(Number);
const differing = least.findIndex((part, i) => part !== here[i]);
if (differing >= 0 && here[differing] < least[differing]) {
  console.error("Tollgate needs Node ${least} or later; this is " + process.version + ". The executable needs none.");
  process.exit(1);
}
require("./${launcher.names[0]}");
`;
}
