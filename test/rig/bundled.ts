/**
 * What `npm test` builds before it runs tests, because reading some two thousand files takes most of the time of a
 * short test or a gateway's start (CPU time on two cores):
 *
 * - the packages that `src/` imports, each as one file, for the test processes: 0.6 s instead of 1.4 s to import a
 * gateway;
 * - the program as a few scripts, like the package of `npm run build`, for gateways that tests start as separate
 * processes: 0.5 s instead of 1.4 s to serve. Tests that name `CHECKOUT` (gateway.ts) and those of the command line
 * start the checkout.
 *
 * A test file that is run alone (`node --test FILE`) has neither, and must pass as well.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { bundle, bundlePackages } from "../../build/bundle.ts";
import launcher from "../../build/launcher.cjs";

/** Below node_modules, which is replaced whenever a package changes. */
const CACHE = resolve("node_modules", ".cache");
/** Programs of recently tested sources are kept, because another run may be using them. */
const KEPT_MS = 86_400_000;
const DIGEST_CHARS = 16;
/** Next to the packages: lists the file of each module. */
const INDEX = "modules.json";

export interface Bundled {
  /** Environment variables for tests. */
  readonly env: Readonly<Record<string, string>>;
  /** Flags of Node for a test process. */
  readonly execArgv: readonly string[];
}

/** Builds both, the packages only if they are missing. */
export async function makeBundled(): Promise<Bundled> {
  const [packages, program] = [await packagesFolder(), await programFile()];
  return {
    env: { TOLLGATE_TEST_PACKAGES: join(packages, INDEX), TOLLGATE_TEST_PROGRAM: program },
    execArgv: ["--import", fileURLToPath(new URL("./bundled-packages.ts", import.meta.url))],
  };
}

async function packagesFolder(): Promise<string> {
  const names = packageModules();
  const maker = ["package-lock.json", "build/bundle.ts", "test/rig/bundled.ts"].map((file) => readFileSync(file));
  const folder = join(CACHE, `packages-for-tests-${digestOf([process.version, ...names, ...maker])}`);
  if (existsSync(folder)) return folder;
  const modules = await Promise.all(
    names.map(async (name, i) => ({ name, file: `${i}.mjs`, exports: exportsOf((await import(name)) as object) })),
  );
  const making = `${folder}.${process.pid}`;
  await bundlePackages(process.cwd(), modules, making);
  const index = modules.map(({ name, file }) => [name, join(folder, file)]);
  writeFileSync(join(making, INDEX), JSON.stringify(Object.fromEntries(index)));
  moveTo(making, folder);
  return folder;
}

/** Everything that `src/` imports from packages. */
function packageModules(): string[] {
  const texts = globSync("src/**/*.ts").map((file) => readFileSync(file, "utf8"));
  const found = texts.flatMap((text) => [...text.matchAll(/^(?:import|export)\s[^;]*?from "([^".][^"]*)"/gm)]);
  const names = found.map(([, name]) => name as string).filter((name) => !name.startsWith("node:"));
  return [...new Set(names)].sort();
}

/** Names that are identifiers. A CommonJS module has another export whose name an import statement cannot use. */
function exportsOf(module: object): string[] {
  return Object.keys(module).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name));
}

async function programFile(): Promise<string> {
  const { scripts } = await bundle(process.cwd(), "tests");
  mkdirSync(CACHE, { recursive: true });
  for (const old of globSync(join(CACHE, "program-for-tests-*"))) {
    if (Date.now() - statSync(old).mtimeMs > KEPT_MS) rmSync(old, { force: true, recursive: true });
  }
  const folder = join(CACHE, `program-for-tests-${digestOf([...scripts.values()])}`);
  if (existsSync(folder)) utimesSync(folder, new Date(), new Date());
  else {
    const making = `${folder}.${process.pid}`;
    mkdirSync(making);
    for (const [name, code] of scripts) writeFileSync(join(making, name), code);
    moveTo(making, folder);
  }
  return join(folder, launcher.names[0] as string);
}

/** Another run may have renamed its folder first. */
function moveTo(making: string, folder: string): void {
  try {
    renameSync(making, folder);
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}

function digestOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part).update("\n");
  return hash.digest("hex").slice(0, DIGEST_CHARS);
}
