/**
 * Runs several test files in one process, each as a suite under its own name, because loading and compiling a gateway
 * takes longer than most files. The calls of `node:test` that a file makes while it is loaded are repeated inside its
 * suite, so that its hooks apply only to its own tests.
 */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename, join, resolve } from "node:path";
import real, * as all from "node:test";
import { pathToFileURL } from "node:url";

/** The recorded calls of the file that is being loaded. */
let said: (() => unknown)[] | undefined;
const known = new Map<unknown, unknown>();

/** The same function, deferred while a file is loaded, with its members (`test.after`). */
function putOff<F extends (...args: never[]) => unknown>(call: F): F {
  const made = known.get(call);
  if (made !== undefined) return made as F;
  const later = ((...args: never[]) => (said === undefined ? call(...args) : void said.push(() => call(...args)))) as F;
  known.set(call, later);
  const members = Object.entries(call).map(([name, member]) => [
    name,
    typeof member === "function" ? putOff(member as F) : member,
  ]);
  return Object.assign(later, Object.fromEntries(members));
}

const test = putOff(real);
export default test;
export { test };
export const after = putOff(all.after);
export const afterEach = putOff(all.afterEach);
export const before = putOff(all.before);
export const beforeEach = putOff(all.beforeEach);
export const describe = putOff(all.describe);
export const suite = putOff(all.suite);

/** Below node_modules, like everything that a run writes. */
const ENTRIES = resolve("node_modules", ".cache", "entries-for-tests");

/** Writes a file for `node --test` that runs these files. @returns its path, which is the same each time. */
export function entryFor(files: readonly string[]): string {
  const code = `import { runTogether } from ${JSON.stringify(import.meta.url)};\nawait runTogether(${JSON.stringify(files)});\n`;
  mkdirSync(ENTRIES, { recursive: true });
  const digest = createHash("sha256").update(code).digest("hex").slice(0, 16);
  const entry = join(ENTRIES, `${basename(files[0] ?? "", ".test.ts")}.${digest}.mjs`);
  writeFileSync(entry, code);
  return entry;
}

/** Loads the files one after the other, and then runs their tests in this order. */
export async function runTogether(files: readonly string[]): Promise<void> {
  registerHooks({
    resolve(specifier, context, next) {
      const isTests = specifier === "node:test" && context.parentURL !== import.meta.url;
      return isTests
        ? { url: import.meta.url, format: "module-typescript", shortCircuit: true }
        : next(specifier, context);
    },
  });
  const suites: { readonly file: string; readonly calls: readonly (() => unknown)[] }[] = [];
  for (const file of files) {
    said = [];
    await import(pathToFileURL(file).href);
    suites.push({ file, calls: said });
  }
  said = undefined;
  for (const { file, calls } of suites) {
    void all.suite(file, () => {
      for (const call of calls) call();
    });
  }
  all.after(endSoon);
}

/** The time for connections and servers to close that are not waited for. */
const LINGER_MS = 60_000;

/**
 * A test that failed or timed out may have left a server open, which would keep this process, and so the run, alive.
 */
function endSoon(): void {
  const end = () => {
    console.error(`something still runs after the last test: ${process.getActiveResourcesInfo().join(", ")}`);
    process.exit(1);
  };
  setTimeout(end, LINGER_MS).unref();
}
