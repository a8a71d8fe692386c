/**
 * `npm run bench`: CPU time per unit of work; all subjects in one run, in turn in each round.
 *
 *     node bench/run.ts [--rounds N] [--json FILE] [--cases TEXT,...] [--subjects TEXT,...] [--cpu-prof DIR] [--smoke]
 *         [--compare FILE]
 *
 * `--cases` and `--subjects` select by a part of the name, or by whole names with a semicolon after each. `--smoke` runs a little of
 * everything and asserts nothing about time: it shows that the benchmark works. `--compare` reads an earlier run's JSON and fails if the CPU
 * time, as a multiple of the bare Node proxy's, has grown by more than 15 %. How to read the figures: docs/benchmarks.md.
 */
import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { newAccountTag, newKey } from "../src/values/key.ts";
import { programOptions } from "../test/rig/program-options.ts";
import { CASES, type Case, type KeyKind, PACE } from "./cases.ts";
import { cpuUs } from "./cpu.ts";
import type { Load, LoadResult } from "./load.ts";
import { MISSING, machineFacts, versionOf } from "./machine.ts";
import { asText, type Figures, type Report, type Round, summarise, worseThan } from "./report.ts";
import { type GatewayShape, type Running, SUBJECTS, type Subject, UPSTREAM_CONNECTIONS } from "./subjects.ts";

const ROUNDS = 9;
const CONNECTIONS = 32;
/** Rounds that do not count: V8 compiles the code, which takes about 25,000 requests, and connections are opened. */
const WARM_UP_ROUNDS = 6;
/** Share of a round's requests in a smoke run. */
const SMOKE_SHARE = 0.05;

interface Plan {
  readonly cases: readonly Case[];
  readonly subjects: readonly Subject[];
  readonly rounds: number;
  readonly warmUpRounds: number;
  readonly share: number;
  readonly profileDir: string | undefined;
  readonly shape: GatewayShape;
}

interface Standing {
  readonly subject: Subject;
  readonly running: Running;
}

const { values } = programOptions({
  options: {
    rounds: { type: "string" },
    json: { type: "string" },
    compare: { type: "string" },
    cases: { type: "string", default: "" },
    subjects: { type: "string", default: "" },
    "cpu-prof": { type: "string" },
    smoke: { type: "boolean", default: false },
  },
});

const cases = chosen(CASES, values.cases);
const plan: Plan = {
  cases,
  subjects: chosen(SUBJECTS, values.subjects),
  rounds: values.smoke ? 1 : Number(values.rounds ?? ROUNDS),
  warmUpRounds: values.smoke ? 0 : WARM_UP_ROUNDS,
  share: values.smoke ? SMOKE_SHARE : 1,
  // Gateways run in folders of their own.
  profileDir: values["cpu-prof"] === undefined ? undefined : resolve(values["cpu-prof"]),
  // At least the connections of every case, or a gateway refuses the rest.
  shape: { concurrency: Math.max(UPSTREAM_CONNECTIONS, ...cases.map(({ connections = 0 }) => connections)) },
};

function chosen<T extends { readonly name: string }>(all: readonly T[], parts: string): readonly T[] {
  const named = parts.split(parts.includes(";") ? ";" : ",").filter((part) => part !== "");
  const wanted = named.length > 0 ? named : [""];
  const isWanted = (name: string, part: string) =>
    all.some((one) => one.name === part) ? name === part : name.includes(part);
  const found = all.filter(({ name }) => wanted.some((part) => isWanted(name, part)));
  if (found.length === 0) throw new Error(`nothing is called "${parts}": ${all.map(({ name }) => name).join("; ")}`);
  return found;
}

// Read first, so that a missing file is noticed at once and not after minutes.
const earlier = values.compare === undefined ? undefined : (JSON.parse(readFileSync(values.compare, "utf8")) as Report);

const upstream = startPart("upstream.ts");
const load = startPart("load.ts");
const standing: Standing[] = [];
try {
  const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
  for (const subject of plan.subjects) {
    const missing = missingOf(subject);
    if (missing !== undefined) {
      process.stdout.write(`${subject.name} is left out: ${missing} is not installed\n`);
      continue;
    }
    if (subject.does && !plan.cases.some(subject.does)) continue;
    const { profileDir, shape } = plan;
    standing.push({ subject, running: await subject.start({ upstreamPort: port, profileDir, shape }) });
  }
  const figures: Figures[] = [];
  for (const one of plan.cases) figures.push(...(await measure(one)));
  const report: Report = { machine: machineFacts(), rounds: plan.rounds, connections: CONNECTIONS, figures };
  process.stdout.write(`\n${asText(report)}`);
  const worse = earlier ? worseThan(report, earlier) : [];
  for (const line of worse) process.stderr.write(`${line}\n`);
  if (worse.length > 0) process.exitCode = 1;
  if (values.json) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
} finally {
  await Promise.all(standing.map(({ running }) => running.stop()));
  upstream.disconnect();
  load.disconnect();
}

/** The program that a subject lacks; undefined: none. */
function missingOf({ name, needs, program }: Subject): string | undefined {
  if (needs !== undefined && versionOf(needs) === MISSING) return needs;
  return program && program() === undefined ? name : undefined;
}

/** Runs one case through every subject in turn, in each round, so that a slow minute of the machine affects all of them. */
async function measure(one: Case): Promise<Figures[]> {
  const doing = standing.filter(({ subject }) => subject.does?.(one) !== false);
  const rounds = new Map<Standing, Round[]>(doing.map((each) => [each, []]));
  for (let i = -plan.warmUpRounds; i < plan.rounds; i++) {
    process.stdout.write(`${one.name}: ${i < 0 ? "warming up" : `round ${i + 1} of ${plan.rounds}`}\n`);
    for (const each of doing) {
      const round = await oneRound(one, each);
      if (i >= 0) rounds.get(each)?.push(round);
    }
  }
  return doing.map((each) =>
    summarise({ case: one.name, subject: each.subject.name, unit: one.unit }, rounds.get(each) ?? []),
  );
}

async function oneRound(one: Case, { subject, running }: Standing): Promise<Round> {
  const count = one.requests * plan.share * (subject.share ?? 1);
  const connections = Math.min(one.connections ?? CONNECTIONS, Math.ceil(count));
  const requests = Math.max(connections, Math.round(count));
  const before = { own: sum(running.pids), behind: sum(running.behind) };
  const result = await send({
    url: running.url + one.path,
    key: keyFor(one.key, running),
    headers: running.headers,
    // A smoke run does not wait.
    body: values.smoke ? one.body.replace(PACE, "") : one.body,
    requests,
    connections,
    refusable: one.key !== undefined,
  });
  if (result.problem !== undefined || result.answered !== requests) {
    throw new Error(`${one.name}, ${subject.name}: ${result.answered} of ${requests} answered; ${result.problem}`);
  }
  return {
    units: requests * one.unitsPerRequest,
    requests,
    seconds: result.seconds,
    cpuUs: sum(running.pids) - before.own,
    behindUs: sum(running.behind) - before.behind,
  };
}

/** An unknown key is well-formed, so that it costs a lookup in the store. */
function keyFor(kind: KeyKind | undefined, { key, limitedKey }: Running): string {
  if (kind === "limited") return limitedKey ?? key;
  return kind === "unknown" ? newKey(newAccountTag(randomBytes), randomBytes).text : key;
}

function sum(pids: readonly number[]): number {
  return pids.reduce((total, pid) => total + cpuUs(pid), 0);
}

async function send(work: Load): Promise<LoadResult> {
  const answered = once(load, "message");
  load.send(work);
  const [result] = (await answered) as [LoadResult];
  return result;
}

function startPart(file: string): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)));
}
