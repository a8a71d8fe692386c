/**
 * `node bench/start.ts`: the cost of a start of the checkout (also of the second `npm start`), the package and the executable (run
 * `npm run build` first), one after the other in each round. Milliseconds from the start of the process to the log line `serving`, with an
 * empty journal and an embedded store; CPU time until then; and resident memory two seconds later. Medians, with the minimum in brackets.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { testConfig } from "../test/rig/config.ts";
import { programOptions } from "../test/rig/program-options.ts";
import { cpuUs } from "./cpu.ts";

const IDLE_AFTER_MS = 2_000;

const { values } = programOptions({
  options: { rounds: { type: "string", default: "9" }, dist: { type: "string", default: "dist" } },
});
const dist = resolve(values.dist);
interface Subject {
  readonly command: readonly string[];
  /** What its size is the size of. */
  readonly files?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const CHECKOUT = [process.execPath, resolve("src/main.ts")];
/** V8's compile cache of `npm start`. */
const COMPILED = { NODE_COMPILE_CACHE: resolve("node_modules/.cache/compiled") };
const SUBJECTS: Readonly<Record<string, Subject>> = {
  checkout: { command: CHECKOUT },
  "checkout, by npm start": { command: CHECKOUT, env: COMPILED },
  package: {
    command: [process.execPath, join(dist, "package/bin/tollgate.cjs")],
    files: globSync(join(dist, "package/bin/*.cjs")),
  },
  executable: { command: [join(dist, "tollgate")], files: [join(dist, "tollgate")] },
};

interface Start {
  readonly readyMs: number;
  readonly cpuMs: number;
  readonly idleMb: number;
}

async function start({ command, env }: Subject): Promise<Start> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-start-"));
  writeFileSync(join(dir, "tollgate.yaml"), testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir }));
  const [program, ...args] = command;
  const begun = performance.now();
  const child = spawn(program as string, [...args, "serve"], {
    cwd: dir,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  try {
    for await (const line of createInterface({ input: child.stdout })) if (line.includes('"event":"serving"')) break;
    const readyMs = performance.now() - begun;
    const cpuMs = cpuUs(child.pid as number) / 1_000;
    await setTimeout(IDLE_AFTER_MS);
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    return { readyMs, cpuMs, idleMb: (Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1_024) / 1e6 };
  } finally {
    child.kill("SIGINT");
    await exited;
    rmSync(dir, { recursive: true, force: true });
  }
}

const starts = new Map<string, Start[]>(Object.keys(SUBJECTS).map((name) => [name, []]));
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, subject] of Object.entries(SUBJECTS)) starts.get(name)?.push(await start(subject));
}

console.log("| form | ready, ms | CPU until then, ms | idle, MB | file, MB |\n|---|---|---|---|---|");
for (const [name, measured] of starts) {
  const figure = (of: (one: Start) => number): string => {
    const sorted = measured.map(of).sort((a, b) => a - b);
    return `${Math.round(sorted[sorted.length >> 1] as number)} (${Math.round(sorted[0] as number)})`;
  };
  const bytes = SUBJECTS[name]?.files?.reduce((sum, file) => sum + statSync(file).size, 0);
  const size = bytes === undefined ? "-" : (bytes / 1e6).toFixed(1);
  const figures = [figure((one) => one.readyMs), figure((one) => one.cpuMs), figure((one) => one.idleMb), size];
  console.log(`| ${name} | ${figures.join(" | ")} |`);
}
