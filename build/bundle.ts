/**
 * The program as a few scripts: the sources and the packages that they import. And packages as a few files, for the test suite.
 * By rolldown; the only file that imports it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { BUNDLED_PREFIX, checkedOut } from "../src/console/page-files.ts";
import launcher from "./launcher.cjs";

export interface BundleOutput {
  /** CommonJS scripts in ASCII, which V8 keeps in one byte per character, by their names (build/launcher.cjs has which these are). */
  readonly scripts: ReadonlyMap<string, string>;
  /** What `--version --json` calls `build`. */
  readonly build: string;
  /** Folders of the packages whose code is in it. */
  readonly packages: readonly string[];
}

/** Syntax of the oldest Node in `engines`. */
const TARGET = "node24";
const DIGEST_CHARS = 12;

/** Large packages that most gateways never need. */
const NOT_IN_A_START = /[\\/]node_modules[\\/](?:fastify|@fastify|ioredis|openid-client|@simplewebauthn)[\\/]/;

/** What a start of a gateway reads, whatever it is. */
const START_SCRIPT = "start.cjs";
/** All else, read when it is first needed: most gateways never hold it in memory. */
const LATER_SCRIPT = "later.cjs";

/**
 * Bundles the sources below `root`. The same sources and name give the same bytes.
 * @param named what to call the build; the commit of a clean checkout, else a digest of the code, when left out.
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
          // What build/program.ts imports is what it reads for a start.
          for (const read of this.getModuleInfo(entry)?.dynamicallyImportedIds ?? []) add(read);
        },
      },
    ],
    // A file that can also be run by itself (npm run schema) is never that in a bundle.
    transform: { target: TARGET, define: { "import.meta.main": "false" } },
    onLog(level, log) {
      // Paths beside a source are read in a checkout only: src/values/program/files.ts.
      if (log.code === "EMPTY_IMPORT_META") return;
      // What a start reads is imported dynamically by build/program.ts, for it to be known.
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
    // Modules of one script that are imported dynamically run when they are, not with the script.
    strictExecutionOrder: true,
    dynamicImportInCjs: false,
    // Names of functions and classes stay, so that the stack of a defect can be read.
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
  if (early) throw new Error(`a start reads ${early}: import it when it is needed`);
  if (first.has(join(root, "src/values/program/files.ts"))) throw new Error("a start reads the texts of all files");
  const build = named ?? commitOf(root) ?? digestOf([...chunks.values()].map(({ code }) => code).join(""));
  const intros: Readonly<Record<string, string>> = {
    [START_SCRIPT]: `const TOLLGATE_BUILD=${JSON.stringify(build)};exports.tollgateBuild=TOLLGATE_BUILD;`,
    [LATER_SCRIPT]: `${demandBuild(build)}const TOLLGATE_FILES=${JSON.stringify(filesOf(root))};`,
  };
  const scripts = launcher.names.map((name) => [name, asAscii((intros[name] ?? "") + chunks.get(name)?.code)] as const);
  const modules = [...chunks.values()].flatMap(({ moduleIds }) => moduleIds);
  return { scripts: new Map(scripts), build, packages: packagesOf(root, modules) };
}

/** What scripts know each other by has another meaning in each build: one that a package's files have been replaced by is refused. */
function demandBuild(build: string): string {
  const message = "another build has taken the place of the one that runs: restart it";
  return `if(require("./${START_SCRIPT}").tollgateBuild!==${JSON.stringify(build)})throw new Error(${JSON.stringify(message)});`;
}

/** A module of a package as `bundlePackages` is to make it. */
export interface PackageModule {
  /** As an import statement says it. */
  readonly name: string;
  /** The file to write, without a folder. */
  readonly file: string;
  /** The names that it exports, `default` among them. */
  readonly exports: readonly string[];
}

/** Writes each of these modules as one ES module into `out`, with files beside them for what they share. */
export async function bundlePackages(root: string, modules: readonly PackageModule[], out: string): Promise<void> {
  // An entry with the names spelt out: of a CommonJS package a bundler cannot tell them.
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

/** What the sources read from beside themselves, by paths below src/. */
function filesOf(root: string): Record<string, string> {
  const cwd = join(root, "src");
  const names = globSync("store/redis/lua/*.lua", { cwd }).sort();
  const pages = [...checkedOut()].map(([path, text]) => [BUNDLED_PREFIX + path, text]);
  return Object.fromEntries([...names.map((name) => [name, readFileSync(join(cwd, name), "utf8")]), ...pages]);
}

/** The commit that is checked out, where the files are what it has. */
function commitOf(root: string): string | undefined {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    return git("status", "--porcelain") === "" ? git("rev-parse", `--short=${DIGEST_CHARS}`, "HEAD") : undefined;
  } catch {
    return undefined; // No git here, or no repository: an unpacked archive.
  }
}

function digestOf(code: string): string {
  return createHash("sha256").update(code).digest("hex").slice(0, DIGEST_CHARS);
}

/** In literals and names, the only places that have other characters once comments are gone, an escape is the same. */
function asAscii(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function packagesOf(root: string, modules: readonly string[]): string[] {
  const folders = modules.map((id) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(resolve(root, id))?.[0]);
  return [...new Set(folders.filter((folder) => folder !== undefined))].sort();
}
