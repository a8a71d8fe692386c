/**
 * `node bench/workers.ts`: the gain from a second core. Complete replies per second of a gateway of two workers, compared with one of a
 * single process; both with Redis, each under full load, in turn. Medians of the rounds.
 *
 * Load, upstream and Redis need cores too, and a machine of two has none left for them. So a core of the gateway is a part of a real one
 * (`--core 0.25`): the CPU controller of Linux (cgroups v1, as root) gives the whole gateway twice that share, and the main thread of each
 * process once. The other threads of V8 and libuv may use either share, as on a machine of two cores.
 *
 * `--rounds N`, `--core SHARE`, `--connections N`.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { programOptions } from "../test/rig/program-options.ts";
import { CASES, type Case } from "./cases.ts";
import { cpuUs } from "./cpu.ts";
import type { Load, LoadResult } from "./load.ts";
import { machineFacts } from "./machine.ts";
import { type Running, SUBJECTS, type Subject } from "./subjects.ts";

const { values } = programOptions({
  options: {
    rounds: { type: "string", default: "7" },
    core: { type: "string", default: "0.25" },
    connections: { type: "string", default: "64" },
  },
});
const ROUNDS = Number(values.rounds);
const CONNECTIONS = Number(values.connections);
const CORES = 2;
const WARM_UP_ROUNDS = 24;
/** Short, so that a request never waits long for the gateway's next CPU share. */
const PERIOD_US = 10_000;
const CORE_US = Math.round(Number(values.core) * PERIOD_US);
const US_PER_S = 1e6;
const GROUPS = "/sys/fs/cgroup/cpu";
const WHOLE = CASES.find(({ name }) => name === "chat, whole") as Case;

interface Standing {
  readonly name: string;
  readonly running: Running;
  readonly rates: number[];
  readonly us: number[];
  readonly shares: number[];
}

/** Makes a control group that may use this much CPU time per period. */
function group(path: string, quotaUs: number): string {
  mkdirSync(path);
  writeFileSync(join(path, "cpu.cfs_period_us"), String(PERIOD_US));
  writeFileSync(join(path, "cpu.cfs_quota_us"), String(quotaUs));
  return path;
}

/** Limits the processes to two cores together, and each main thread to one core. @returns a function that removes the control groups. */
function confine(pids: readonly number[]): () => void {
  const all = group(join(GROUPS, `tollgate-bench-${process.pid}-${pids[0]}`), CORES * CORE_US);
  const made = [all];
  for (const pid of pids) {
    const threads = readdirSync(`/proc/${pid}/task`);
    const main = group(join(all, String(pid)), CORE_US);
    made.unshift(main);
    for (const thread of threads) writeFileSync(join(thread === String(pid) ? main : all, "tasks"), thread);
  }
  return () => {
    for (const path of made) rmdirSync(path);
  };
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1] as number;
}

function part(file: string): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)));
}

if (!existsSync(join(GROUPS, "cpu.cfs_quota_us"))) {
  process.stderr.write(
    `${GROUPS} is no CPU controller of cgroups v1: nothing here can give a gateway a part of a core\n`,
  );
  process.exit(1);
}
const upstream = part("upstream.ts");
const load = part("load.ts");
const standing: Standing[] = [];
const undo: (() => void)[] = [];
try {
  const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
  for (const name of ["tollgate, redis", "tollgate, redis, 2 workers"]) {
    const subject = SUBJECTS.find((one) => one.name === name) as Subject;
    const running = await subject.start({ upstreamPort: port, profileDir: undefined });
    standing.push({ name, running, rates: [], us: [], shares: [] });
    for (let round = 0; round < WARM_UP_ROUNDS; round++) await oneRound(running);
    undo.push(confine(running.pids));
  }
  for (let round = 0; round < ROUNDS; round++) for (const one of standing) await measured(one);
  process.stdout.write(asTable());
} finally {
  await Promise.all(standing.map(({ running }) => running.stop()));
  for (const one of undo) one();
  upstream.disconnect();
  load.disconnect();
}

async function measured({ running, rates, us, shares }: Standing): Promise<void> {
  const spent = () => running.pids.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const before = spent();
  const { seconds } = await oneRound(running);
  const took = spent() - before;
  rates.push(WHOLE.requests / seconds);
  us.push(took / WHOLE.requests);
  shares.push((took * PERIOD_US) / (seconds * US_PER_S * CORE_US));
}

async function oneRound({ url, key }: Running): Promise<LoadResult> {
  const { path, body, requests } = WHOLE;
  const answered = once(load, "message");
  load.send({ url: url + path, key, body, requests, connections: CONNECTIONS, refusable: false } satisfies Load);
  const [result] = (await answered) as [LoadResult];
  if (result.problem !== undefined) throw new Error(result.problem);
  return result;
}

function asTable(): string {
  const { cores, cpu, linux, node, redis } = machineFacts();
  const [first] = standing as [Standing];
  const rows = standing.map(({ name, rates, us, shares }) => {
    const ratios = rates.map((rate, round) => rate / (first.rates[round] as number));
    const [rate, ratio, cost, share] = [rates, ratios, us, shares].map(median) as [number, number, number, number];
    return `| ${name} | ${rate.toFixed(0)} | ${ratio.toFixed(2)} | ${cost.toFixed(0)} | ${share.toFixed(2)} |`;
  });
  const head = "| subject | requests/s | beside the first | CPU us per request | cores used |\n|---|---|---|---|---|";
  const size = `${ROUNDS} rounds, ${CONNECTIONS} connections, a core is ${values.core} of one`;
  return `${cores} cores (${cpu}), Linux ${linux}, Node ${node}, Redis ${redis}; ${size}\n\n${head}\n${rows.join("\n")}\n`;
}
