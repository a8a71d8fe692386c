/**
 * `node bench/reload.ts`: how long a reload holds the event loop. Gateways with an embedded store and no requests, one per number of models;
 * each gets SIGHUP with a changed file, round after round, while one connection asks `/healthz` every few milliseconds. Medians of the rounds, with
 * the maximum in brackets: the slowest answer, which contains the longest hold; milliseconds until the log says `config_reloaded`; the CPU
 * time of the main thread until then, which a busy machine changes less than the other two; and that of the whole process. The CPU time of
 * the questions, as measured before the signal, is subtracted from both.
 *
 * `--models 20,1000`, `--groups N`, `--rounds N`, `--program FILE` (the executable, or the package's `tollgate.cjs`; default: the checkout).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { largeConfig } from "../test/rig/large-config.ts";
import { programOptions } from "../test/rig/program-options.ts";
import { pidOf, stopper } from "./started.ts";

const { values } = programOptions({
  options: {
    models: { type: "string", default: "20,1000" },
    groups: { type: "string", default: "20" },
    rounds: { type: "string", default: "7" },
    program: { type: "string" },
  },
});
const ROUNDS = Number(values.rounds);
/** The first ones compile code that later ones find compiled. */
const WARM_UP_ROUNDS = 2;
const REST_MS = 500;
const ASK_EVERY_MS = 5;

const NS_PER_MS = 1e6;
const MS_PER_TICK = 10;

interface Round {
  readonly heldMs: number;
  readonly untilMs: number;
  readonly loopCpuMs: number;
  readonly cpuMs: number;
}

function command(): readonly string[] {
  if (values.program === undefined) return [process.execPath, resolve("src/main.ts")];
  const file = resolve(values.program);
  return file.endsWith(".cjs") ? [process.execPath, file] : [file];
}

async function measure(models: number): Promise<{ bytes: number; rounds: Round[] }> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-reload-"));
  const file = join(dir, "tollgate.yaml");
  const textOf = (round: number) =>
    largeConfig({ dir, models, groups: Number(values.groups), more: `heartbeat: ${20 + (round % 2)}s\n` });
  writeFileSync(file, textOf(-1));
  const [program = "", ...args] = command();
  const child = spawn(program, [...args, "serve", "--config", file], {
    cwd: dir,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = stopper(child);
  const line = logOf(child.stdout, once(child, "exit"));
  const pid = pidOf(child);
  const rounds: Round[] = [];
  try {
    const { admin } = await line("serving");
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
      await setTimeout(REST_MS);
      const asked = askAgain(`${admin}/healthz`);
      const rested = cpuMsOf(pid);
      await setTimeout(REST_MS);
      const before = cpuMsOf(pid);
      const answersBefore = asked.counted();
      asked.restart();
      writeFileSync(file, textOf(round));
      const begunMs = performance.now();
      const reloaded = line("config_reloaded");
      child.kill("SIGHUP");
      await reloaded;
      const untilMs = performance.now() - begunMs;
      const after = cpuMsOf(pid);
      const share = asked.counted() / answersBefore;
      const heldMs = await asked.slowestMs();
      const spent = (of: "loop" | "all") => after[of] - before[of] - (before[of] - rested[of]) * share;
      if (round >= 0) rounds.push({ heldMs, untilMs, loopCpuMs: spent("loop"), cpuMs: spent("all") });
    }
  } finally {
    await end();
    rmSync(dir, { recursive: true, force: true });
  }
  return { bytes: textOf(0).length, rounds };
}

/** @returns a function that resolves with the next log line of an event, and rejects if the file is refused or the gateway ends. */
function logOf(output: Readable, exited: Promise<unknown>) {
  let wanted: { readonly event: string; readonly found: PromiseWithResolvers<Record<string, string>> } | undefined;
  createInterface({ input: output }).on("line", (text) => {
    const said = JSON.parse(text) as Record<string, string>;
    if (said.event === wanted?.event) wanted?.found.resolve(said);
    else if (said.event === "config_refused") wanted?.found.reject(new Error(text));
  });
  void exited.then(() => wanted?.found.reject(new Error("the gateway has ended")));
  return (event: string): Promise<Record<string, string>> => {
    wanted = { event, found: Promise.withResolvers() };
    return wanted.found.promise;
  };
}

/** CPU time so far: of the main thread, and of all threads, those that have ended included (in hundredths of a second). */
function cpuMsOf(pid: number): { readonly loop: number; readonly all: number } {
  const [ns = ""] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ", 1);
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return { loop: Number(ns) / NS_PER_MS, all: (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK };
}

/** Asks one URL on one connection. */
function askAgain(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let slowest = 0;
  let answers = 0;
  let isDone = false;
  const asking = (async () => {
    while (!isDone) {
      const begun = performance.now();
      const [response] = await once(get(url, { agent }), "response");
      response.resume();
      await once(response, "end");
      slowest = Math.max(slowest, performance.now() - begun);
      answers++;
      await setTimeout(ASK_EVERY_MS);
    }
    agent.destroy();
  })();
  // Reported by slowestMs, unless something else has failed before.
  asking.catch(() => {});
  return {
    /** Counts from here. @returns the number of answers until now. */
    counted(): number {
      const counted = answers;
      answers = 0;
      return counted;
    },
    /** Forgets the times so far. */
    restart(): void {
      slowest = 0;
    },
    /** Asks once more, because what follows the reload is a part of it. */
    async slowestMs(): Promise<number> {
      await setTimeout(REST_MS);
      isDone = true;
      await asking;
      return slowest;
    },
  };
}

function figure(numbers: readonly number[]): string {
  const sorted = numbers.toSorted((a, b) => a - b);
  return `${sorted[sorted.length >> 1]?.toFixed(0)} (${sorted.at(-1)?.toFixed(0)})`;
}

process.stdout.write(
  "| models | file, KB | slowest answer, ms | until in force, ms | CPU of the main thread, ms | CPU of all, ms |\n|---|---|---|---|---|---|\n",
);
for (const models of values.models.split(",").map(Number)) {
  const { bytes, rounds } = await measure(models);
  const of = (key: keyof Round) => figure(rounds.map((round) => round[key]));
  const cells = [models, (bytes / 1e3).toFixed(0), of("heldMs"), of("untilMs"), of("loopCpuMs"), of("cpuMs")];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}
