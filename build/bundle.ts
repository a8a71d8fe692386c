/**
 * Bundles the program, sources and imported packages, into a few scripts; and packages alone into a few files, for the test suite. Uses
 * rolldown; the only file that imports it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { BUNDLED_PREFIX, checkedOut } from "../src/console/page-files.ts";
import launcher from "./launcher.cjs";

export interface BundleOutput {
  /** CommonJS scripts by name (build/launcher.cjs lists them). They are ASCII, so that V8 stores one byte per character. */
  readonly scripts: ReadonlyMap<string, string>;
  /** The member `build` of `--version --json`. */
  readonly build: string;
  /** Folders of the bundled packages. */
  readonly packages: readonly string[];
}

/** The oldest Node in `engines`, for the syntax. */
const TARGET = "node24";
const DIGEST_CHARS = 12;

/** Large packages that most gateways never need. */
const NOT_IN_A_START = /[\\/]node_modules[\\/](?:fastify|@fastify|ioredis|openid-client|@simplewebauthn)[\\/]/;

/** Loaded at every start of a gateway. */
const START_SCRIPT = "start.cjs";
/** Everything else, loaded when it is first needed; most gateways never load it. */
const LATER_SCRIPT = "later.cjs";

/**
 * Bundles the sources below `root`. The same sources and name give the same bytes.
 * @param named name of the build; default: the commit of a clean checkout, else a digest of the code.
 */
export async function bundle(root: string, named: string | undefined): Promise<BundleOutput> {
  const entry = join(root, "build/program.ts");
  const first = new Set<string>();
  const bundled = await rolldown({
    input: entry,
    cwd: root,
    platform: "node",
    tsconfig: false,
    plugins: [
      {
        name: "first",
        buildEnd() {
          const add = (id: string): void => {
            if (first.has(id)) return;
            first.add(id);
            for (const imported of this.getModuleInfo(id)?.importedIds ?? []) add(imported);
          };
          // A start loads exactly what build/program.ts imports dynamically.
          for (const read of this.getModuleInfo(entry)?.dynamicallyImportedIds ?? []) add(read);
        },
      },
    ],
    // In a bundle no file runs as its own main program (as npm run schema does).
    transform: { target: TARGET, define: { "import.meta.main": "false" } },
    onLog(level, log) {
      // Files next to a source are read only in a checkout: src/values/program/files.ts.
      if (log.code === "EMPTY_IMPORT_META") return;
      // build/program.ts imports the modules of a start dynamically only to identify them.
      if (log.code === "INEFFECTIVE_DYNAMIC_IMPORT") return;
      if (level === "warn") throw new Error(`the bundler warns: ${log.message}`);
    },
  });
  const { output } = await bundled.generate({
    format: "cjs",
    codeSplitting: {
      groups: [
        { name: "start", test: (id) => first.has(id) },
        { name: "later", test: (id) => id !== entry && !first.has(id) },
      ],
    },
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name].cjs",
    // Dynamically imported modules run when they are imported, not when their script is loaded.
    strictExecutionOrder: true,
    dynamicImportInCjs: false,
    // Keep the names of functions and classes, so that stack traces are readable.
    minify: {
      compress: false,
      mangle: { keepNames: { function: true, class: true } },
      codegen: { removeWhitespace: true },
    },
    comments: { legal: false },
  });
  await bundled.close();
  const chunks = new Map(output.filter((one) => one.type === "chunk").map((chunk) => [chunk.fileName, chunk]));
  const missing = new Set(chunks.keys()).symmetricDifference(new Set(launcher.names));
  if (missing.size > 0) throw new Error(`the bundle's scripts are not those of build/launcher.cjs: ${[...missing]}`);
  const early = [...first].find((id) => NOT_IN_A_START.test(id));
  if (early) throw new Error(`a start loads ${early}: import it when it is needed`);
  if (first.has(join(root, "src/values/program/files.ts"))) throw new Error("a start loads the texts of all files");
  const build = named ?? commitOf(root) ?? digestOf([...chunks.values()].map(({ code }) => code).join(""));
  const intros: Readonly<Record<string, string>> = {
    [START_SCRIPT]: `const TOLLGATE_BUILD=${JSON.stringify(build)};exports.tollgateBuild=TOLLGATE_BUILD;`,
    [LATER_SCRIPT]: `${demandBuild(build)}const TOLLGATE_FILES=${JSON.stringify(filesOf(root))};`,
  };
  const scripts = launcher.names.map((name) => [name, asAscii((intros[name] ?? "") + chunks.get(name)?.code)] as const);
  const modules = [...chunks.values()].flatMap(({ moduleIds }) => moduleIds);
  return { scripts: new Map(scripts), build, packages: packagesOf(root, modules) };
}

/** Code that refuses to run with scripts of another build, because names shared between scripts differ between builds. */
function demandBuild(build: string): string {
  const message = "the running build was replaced by another one on disk: restart the process";
  return `if(require("./${START_SCRIPT}").tollgateBuild!==${JSON.stringify(build)})throw new Error(${JSON.stringify(message)});`;
}

/** A module of a package for `bundlePackages`. */
export interface PackageModule {
  /** As in an import statement. */
  readonly name: string;
  /** The file to write, without a folder. */
  readonly file: string;
  /** The names that it exports, including `default`. */
  readonly exports: readonly string[];
}

/** Writes each of these modules as one ES module into `out`, next to further files with the code that they share. */
export async function bundlePackages(root: string, modules: readonly PackageModule[], out: string): Promise<void> {
  // Entries with explicit names, because a bundler does not know the exports of a CommonJS package.
  const entries = new Map(
    modules.map(({ name, exports }) => [
      `entry:${name}`,
      `export { ${exports.join(", ")} } from ${JSON.stringify(name)};`,
    ]),
  );
  const bundled = await rolldown({
    input: Object.fromEntries(modules.map(({ name, file }) => [file, `entry:${name}`])),
    cwd: root,
    platform: "node",
    tsconfig: false,
    plugins: [
      {
        name: "entries",
        resolveId: (id) => (entries.has(id) ? id : undefined),
        load: (id) => entries.get(id),
      },
    ],
  });
  await bundled.write({
    dir: out,
    format: "esm",
    entryFileNames: "[name]",
    chunkFileNames: "shared-[hash].mjs",
    sanitizeFileName: false,
    comments: { legal: false },
  });
  await bundled.close();
}

/** The files that the sources read at run time, by their paths below src/. */
function filesOf(root: string): Record<string, string> {
  const cwd = join(root, "src");
  const names = globSync("store/redis/lua/*.lua", { cwd }).sort();
  const pages = [...checkedOut()].map(([path, text]) => [BUNDLED_PREFIX + path, text]);
  return Object.fromEntries([...names.map((name) => [name, readFileSync(join(cwd, name), "utf8")]), ...pages]);
}

/** The commit that is checked out; undefined if files differ from it. */
function commitOf(root: string): string | undefined {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    return git("status", "--porcelain") === "" ? git("rev-parse", `--short=${DIGEST_CHARS}`, "HEAD") : undefined;
  } catch {
    return undefined; // No git, or no repository (an unpacked archive).
  }
}

function digestOf(code: string): string {
  return createHash("sha256").update(code).digest("hex").slice(0, DIGEST_CHARS);
}

/** Escapes other characters. Without comments they occur only in literals and names, where an escape means the same. */
function asAscii(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function packagesOf(root: string, modules: readonly string[]): string[] {
  const folders = modules.map((id) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(resolve(root, id))?.[0]);
  return [...new Set(folders.filter((folder) => folder !== undefined))].sort();
}
