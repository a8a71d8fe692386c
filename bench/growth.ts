/**
 * `node bench/growth.ts`: whether a request costs more in a larger gateway. CPU microseconds per complete reply of gateways that differ in
 * one respect, measured in turn; medians of the rounds, and the ratio to the smallest gateway:
 *
 * - *10 accounts* and *100,000*: ten of them send requests;
 * - *3 models* (one of each protocol) and *1,000*, all in the key's group.
 *
 * `--rounds N`, `--accounts N`, `--models N`. The accounts are made first, which takes the embedded store some minutes. Six warm-up rounds
 * come before the rounds that count, so even a run of one round takes minutes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { programOptions } from "../test/rig/program-options.ts";
import { BENCH_MODELS, CASES, type Case } from "./cases.ts";
import { cpuUs } from "./cpu.ts";
import type { Load, LoadResult } from "./load.ts";
import { MISSING, machineFacts, versionOf } from "./machine.ts";
import { type GatewayShape, type Running, SUBJECTS } from "./subjects.ts";

const { values } = programOptions({
  options: {
    rounds: { type: "string", default: "7" },
    accounts: { type: "string", default: "100000" },
    models: { type: "string", default: "1000" },
  },
});
const ROUNDS = Number(values.rounds);
const WARM_UP_ROUNDS = 6;
const CONNECTIONS = 32;
const PAYERS = 10;
const WHOLE = CASES.find(({ name }) => name === "chat, whole") as Case;

const SHAPES: Readonly<Record<string, GatewayShape>> = {
  "10 accounts, 3 models": { payers: PAYERS },
  [`${values.accounts} accounts`]: { payers: PAYERS, moreAccounts: Number(values.accounts) - PAYERS },
  [`${values.models} models`]: { payers: PAYERS, moreModels: Number(values.models) - Object.keys(BENCH_MODELS).length },
};

interface Standing {
  readonly store: string;
  readonly shape: string;
  readonly running: Running;
  readonly us: number[];
}

function part(file: string): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)));
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1] as number;
}

const upstream = part("upstream.ts");
const load = part("load.ts");
const standing: Standing[] = [];
try {
  const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
  for (const store of ["embedded", "redis"]) {
    const subject = SUBJECTS.find(({ name }) => name === `tollgate, ${store}`);
    if (!subject || (subject.needs !== undefined && versionOf(subject.needs) === MISSING)) continue;
    for (const [name, shape] of Object.entries(SHAPES)) {
      process.stdout.write(`${store}: ${name}\n`);
      const running = await subject.start({ upstreamPort: port, profileDir: undefined, shape });
      standing.push({ store, shape: name, running, us: [] });
    }
  }
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    for (const { running, us } of standing) {
      const spent = await oneRound(running);
      if (round >= 0) us.push(spent);
    }
  }
  process.stdout.write(`\n${asTable()}`);
} finally {
  await Promise.all(standing.map(({ running }) => running.stop()));
  upstream.disconnect();
  load.disconnect();
}

async function oneRound({ url, key, keys, pids }: Running): Promise<number> {
  const before = pids.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const answered = once(load, "message");
  const { path, body, requests } = WHOLE;
  load.send({ url: url + path, key, keys, body, requests, connections: CONNECTIONS, refusable: false } satisfies Load);
  const [{ problem }] = (await answered) as [LoadResult];
  if (problem !== undefined) throw new Error(problem);
  return (pids.reduce((sum, pid) => sum + cpuUs(pid), 0) - before) / requests;
}

function asTable(): string {
  const { cores, cpu, linux, node, redis } = machineFacts();
  const rows = standing.map(({ store, shape, us }) => {
    const least = standing.find((one) => one.store === store) as Standing;
    return `| ${store} | ${shape} | ${median(us).toFixed(0)} | ${(median(us) / median(least.us)).toFixed(2)} |`;
  });
  const head = "| store | gateway with | CPU us per request | beside the first |\n|---|---|---|---|";
  return `${cores} cores (${cpu}), Linux ${linux}, Node ${node}, Redis ${redis}; ${ROUNDS} rounds\n\n${head}\n${rows.join("\n")}\n`;
}
