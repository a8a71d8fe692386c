/**
 * `npm test`: makes sure that the real servers are there, runs every test file, says after each how many are done, and ends
 * with the slowest ten files, what failed, and `N passed, N failed`. Arguments are folders or files below test/; none means all
 * of them. `--report FILE` writes the counts and what failed as JSON.
 */
import { once } from "node:events";
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { makeBundled } from "./rig/bundled.ts";
import { askedServers } from "./rig/litellm.ts";
import { tracesReadBy } from "./rig/otel-collector.ts";
import { programOptions } from "./rig/program-options.ts";
import { ensureSystemPackages } from "./rig/system-packages.ts";
import { entryFor } from "./rig/together.ts";

/**
 * The longest that a test may wait; one that hangs fails the run and is named. Node hands this on to the tests of a process and
 * sets the process itself no limit: one that never gives up the CPU holds the run up.
 */
const TEST_TIMEOUT_MS = 300_000;
/** Test files at once: the machines have two cores, and a file waits for half of its time, for servers and timers. */
const CONCURRENCY = 4;
const SLOWEST_SHOWN = 10;
const FAILURE_CHARACTERS_SHOWN = 500;
const MS_PER_S = 1_000;

const { values, positionals } = programOptions({ allowPositionals: true, options: { report: { type: "string" } } });

function filesOf(selection: readonly string[]): string[] {
  const wanted = selection.length === 0 ? ["test"] : selection;
  const missing = wanted.find((path) => !existsSync(path));
  if (missing !== undefined) {
    process.stderr.write(`There is no file or folder ${missing}.\n`);
    process.exit(2);
  }
  const found = wanted.flatMap((path) =>
    statSync(path).isDirectory() ? globSync(join(path, "**/*.test.ts")) : [path],
  );
  return [...new Set(found)].sort();
}

/** Folders whose tests start several processes each and load all cores: one file at a time. */
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
    "every-request-under-faults-",
    "holds-of-a-killed-",
    "journals-of-",
    "whatever-happens-",
  ].join("|")}).*\\.test\\.ts$`,
);
const isAlone = (file: string) => ALONE.test(file) && !MOSTLY_WAITS.test(file);
/**
 * Files that may wait for the CPU, since they only compute, or wait for what a browser shows: beside those that run alone, with what
 * these leave of it.
 */
const MAY_WAIT = /^test\/(tree|endurance\/(judge|simulation)|unit\/(convert|values|wire)|e2e\/ops\/console)\//;
const MAY_WAIT_CONCURRENCY = 2;
/** Folders whose files share processes, so many at most, since to load what they test takes longer than most of them. */
const TOGETHER = /^test\/(unit\/(?!settle|store)|e2e\/(protocol|money\/(bill|cards)|ops\/console)\/)/;
const TOGETHER_MAX = 10;
/** What a process says of itself is about the tests of one file. */
const MEASURES = /process\.(cpu|memory)Usage|longestTurn/;

ensureSystemPackages();
// Four hundred files and some thousand processes load the same modules: each is stripped of its types and compiled once.
process.env.NODE_COMPILE_CACHE ??= resolve("node_modules", ".cache", "compiled-for-tests");
const { env, execArgv } = await makeBundled();
Object.assign(process.env, env);
const files = filesOf(positionals);
const timings: { readonly file: string; readonly ms: number }[] = [];
let passed = 0;
let failed = 0;
/** A line for each, with its file and the beginning of what it says. */
const failures: string[] = [];
const skipped: string[] = [];
console.log(`${files.length} files. Traces are read by ${tracesReadBy()}. Servers of others: ${askedServers()}.`);
await Promise.all([
  runAll(files.filter(isAlone), 1),
  runAll(
    files.filter((file) => MAY_WAIT.test(file)),
    MAY_WAIT_CONCURRENCY,
    ["--import", fileURLToPath(new URL("./rig/nice.ts", import.meta.url))],
  ),
]);
await runAll(
  files.filter((file) => !isAlone(file) && !MAY_WAIT.test(file)),
  CONCURRENCY,
);
if (passed + failed === 0) console.error(`No test ran (${files.length} files).`);
// A process that ends by itself, or before all is loaded, takes its other files along; with status 0 nothing else tells.
const done = new Set(timings.map(({ file }) => file));
for (const file of files.filter((one) => !done.has(one))) {
  failed++;
  failures.push(`${file} was not run to its end.`);
  console.error(failures.at(-1));
}
if (passed === 0 || failed > 0) process.exitCode = 1;
if (values.report) writeFileSync(values.report, JSON.stringify({ passed, failed, skipped: skipped.length, failures }));
if (skipped.length > 0) console.log(`\n${skipped.length} skipped\n  ${skipped.join("\n  ")}`);
const slowest = timings.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_SHOWN);
console.log(`\nThe slowest files:\n${slowest.map(({ file, ms }) => `${seconds(ms).padStart(9)}  ${file}`).join("\n")}`);
if (failures.length > 0) console.log(`\nFailed:\n  ${failures.join("\n  ")}`);
console.log(`\n${passed} passed, ${failed} failed`);

function seconds(ms: number): string {
  return `${(ms / MS_PER_S).toFixed(1)} s`;
}

/** What a failure says, on one line. */
function beginningOf(error: Error): string {
  const { message } = error.cause instanceof Error ? error.cause : error;
  return message.replaceAll(/\s+/g, " ").trim().slice(0, FAILURE_CHARACTERS_SHOWN);
}

/** One line for each file, so that a long run, also one without a terminal, shows how far it is. */
function fileDone(file: string, ms: number): void {
  timings.push({ file, ms });
  const failures = failed === 0 ? "" : `, ${failed} failed`;
  console.log(`[${timings.length} of ${files.length}${failures}] ${file}: ${seconds(ms)}`);
}

/** One file for each process that is to run. */
function processesFor(wanted: readonly string[]): string[] {
  const shares = (file: string) => TOGETHER.test(file) && !MEASURES.test(readFileSync(file, "utf8"));
  const groups = wanted.filter((file) => !shares(file)).map((file) => [file]);
  for (const some of Map.groupBy(wanted.filter(shares), dirname).values()) {
    while (some.length > 0) groups.push(some.splice(0, TOGETHER_MAX));
  }
  return groups.map((group) => entryFor(group));
}

interface Ended {
  readonly name: string;
  readonly nesting: number;
  readonly details: { readonly duration_ms: number };
}

async function runAll(wanted: readonly string[], concurrency: number, flags: readonly string[] = []): Promise<void> {
  if (wanted.length === 0) return;
  const stream = run({
    files: processesFor(wanted),
    concurrency,
    timeout: TEST_TIMEOUT_MS,
    execArgv: [...execArgv, ...flags],
  });
  // A file is a suite of its process (rig/together.ts); a process without any test passes as a test of its own.
  const isProcess = ({ name, nesting }: Ended) => nesting === 0 && name.endsWith(".mjs");
  /** Tests that were told of since the last file was done, and the failures among them: those of the next one. */
  let told = 0;
  const ownFailures: string[] = [];
  const suiteDone = ({ name, nesting, details }: Ended) => {
    if (nesting > 0) return;
    if (told === 0) {
      failed++;
      failures.push(`${name} has no test.`);
      console.error(failures.at(-1));
    }
    told = 0;
    failures.push(...ownFailures.splice(0).map((failure) => `${name}: ${failure}`));
    fileDone(name, details.duration_ms);
  };
  stream.on("test:pass", (event) => {
    const reason = event.skip ?? event.todo;
    if (event.details.type === "suite" && reason === undefined) return suiteDone(event);
    if (isProcess(event)) return;
    told++;
    if (reason === undefined) passed++;
    else skipped.push(`${event.name}: ${reason}`);
  });
  stream.on("test:fail", (event) => {
    // A suite fails with its tests, which are counted, or by itself: in a hook.
    const { failureType } = event.details.error as { failureType?: string };
    if (event.details.type !== "suite" || failureType !== "subtestsFailed") {
      failed++;
      told++;
      ownFailures.push(`${event.name}: ${beginningOf(event.details.error)}`);
    }
    if (event.details.type === "suite") suiteDone(event);
  });
  const report = stream.compose(spec);
  report.pipe(process.stdout, { end: false });
  await once(report, "end");
}
