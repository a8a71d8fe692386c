/**
 * `npm test`: makes sure that the real servers are there, runs every test file, says after each how many are done, and ends
 * with the slowest ten files and `N passed, N failed`. Arguments are folders or files below test/; none means all of them.
 * `--report FILE` writes the counts as JSON.
 */
import { once } from "node:events";
import { globSync, statSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import process from "node:process";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";
import { makeBundled } from "./rig/bundled.ts";
import { askedServers } from "./rig/litellm.ts";
import { tracesReadBy } from "./rig/otel-collector.ts";
import { ensureSystemPackages } from "./rig/system-packages.ts";

/** The longest that one test file may take; a file that hangs fails the run and names itself. */
const FILE_TIMEOUT_MS = 300_000;
/** Test files at once: the machines have two cores, and a file waits for a third of its time and more, for servers and timers. */
const CONCURRENCY = 3;
const SLOWEST_SHOWN = 10;
const MS_PER_S = 1_000;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { report: { type: "string" } } });

function filesOf(selection: readonly string[]): string[] {
  const wanted = selection.length === 0 ? ["test"] : selection;
  const found = wanted.flatMap((path) =>
    statSync(path).isDirectory() ? globSync(join(path, "**/*.test.ts")) : [path],
  );
  return [...new Set(found)].sort();
}

/** Folders whose tests start several processes each and load all cores: one file at a time, after the others. */
const ALONE = /^test\/(endurance\/(chaos|soak)|e2e\/(money\/shared|failure\/store|ops\/(fronts|workers)))\//;
/** Files in them that mostly wait, for a process to start or for a pause to be over. */
const MOSTLY_WAITS = new RegExp(
  `/(${[
    "A8-",
    "G3-a-.*every-step",
    "G4-",
    "a-connection-that-",
    "a-gateway-ends-",
    "a-worker-that-dies-",
    "b13-",
    "b7-",
    "each-file-",
    "holds-of-a-killed-",
    "journals-of-",
    "whatever-happens-",
  ].join("|")}).*\\.test\\.ts$`,
);
const isAlone = (file: string) => ALONE.test(file) && !MOSTLY_WAITS.test(file);

ensureSystemPackages();
// Four hundred files and some thousand processes load the same modules: each is stripped of its types and compiled once.
process.env.NODE_COMPILE_CACHE ??= resolve("node_modules", ".cache", "compiled-for-tests");
const { env, execArgv } = await makeBundled();
Object.assign(process.env, env);
const files = filesOf(positionals);
const timings: { readonly file: string; readonly ms: number }[] = [];
let passed = 0;
let failed = 0;
const skipped: string[] = [];
console.log(`${files.length} files. Traces are read by ${tracesReadBy()}. Servers of others: ${askedServers()}.`);
await runAll(
  files.filter((file) => !isAlone(file)),
  CONCURRENCY,
);
await runAll(files.filter(isAlone), 1);
if (passed + failed === 0) console.error(`No test ran (${files.length} files).`);
if (passed === 0 || failed > 0) process.exitCode = 1;
if (values.report) writeFileSync(values.report, JSON.stringify({ passed, failed, skipped: skipped.length }));
if (skipped.length > 0) console.log(`\n${skipped.length} skipped\n  ${skipped.join("\n  ")}`);
const slowest = timings.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_SHOWN);
console.log(`\nThe slowest files:\n${slowest.map(({ file, ms }) => `${seconds(ms).padStart(9)}  ${file}`).join("\n")}`);
console.log(`\n${passed} passed, ${failed} failed`);

function seconds(ms: number): string {
  return `${(ms / MS_PER_S).toFixed(1)} s`;
}

/** One line for each file, so that a long run, also one without a terminal, shows how far it is. */
function fileDone(file: string, ms: number): void {
  timings.push({ file, ms });
  const failures = failed === 0 ? "" : `, ${failed} failed`;
  console.log(`[${timings.length} of ${files.length}${failures}] ${file}: ${seconds(ms)}`);
}

async function runAll(wanted: readonly string[], concurrency: number): Promise<void> {
  if (wanted.length === 0) return;
  const stream = run({ files: [...wanted], concurrency, timeout: FILE_TIMEOUT_MS, execArgv: [...execArgv] });
  // Files count as the tests inside them; a file without any would otherwise pass as a test of its own.
  const isFile = (event: { name: string; nesting: number }) => event.nesting === 0 && event.name.endsWith(".test.ts");
  stream.on("test:pass", (event) => {
    if (isFile(event) || event.details.type === "suite") return;
    if (event.skip === undefined) passed++;
    else skipped.push(`${event.name}: ${event.skip}`);
  });
  stream.on("test:fail", (event) => {
    if (event.details.type !== "suite") failed++;
  });
  // One for each file, and one for them all, which names none.
  stream.on("test:summary", ({ file, duration_ms: ms }) => {
    if (file !== undefined) fileDone(relative(".", file), ms);
  });
  const report = stream.compose(spec);
  report.pipe(process.stdout, { end: false });
  await once(report, "end");
}
