/**
 * `node bench/streams.ts`: the cost of many streams at once, for the gateway and the bare Node proxy: 2,000 streams of 200 events, ten per
 * second each. Resident memory when idle, per open stream, and after `--requests N` complete replies; CPU time per event and as a share
 * of one core. A stream that is refused or cut ends the run.
 *
 * `--streams N`, `--requests N`; `--translated`: the clients speak messages, the upstream chat completions. `--executable FILE`
 * (from `npm run build`) instead of the checkout.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { programOptions } from "../test/rig/program-options.ts";
import { CASES, type Case, PACE, STREAM_EVENTS } from "./cases.ts";
import { cpuUs } from "./cpu.ts";
import type { Load, LoadResult } from "./load.ts";
import { machineFacts } from "./machine.ts";
import { BARE_PROXY, type Running, SUBJECTS } from "./subjects.ts";

const { values } = programOptions({
  options: {
    streams: { type: "string", default: "2000" },
    requests: { type: "string", default: "50000" },
    translated: { type: "boolean", default: false },
    executable: { type: "string" },
  },
});
const STREAMS = Number(values.streams);
const REQUESTS = Number(values.requests);
const EVERY_MS = 100;
const IDLE_AFTER_MS = 2_000;
const SAMPLE_MS = 500;
/** An account may have a thousand requests at once. */
const PAYERS = Math.ceil(STREAMS / 500);
/** Streams before those that count, so that code is compiled. */
const WARM_UP = 200;
const US_PER_S = 1e6;

const CLIENT = values.translated ? "messages to chat" : "chat";
const { path: PATH } = caseOf("whole");
const STREAM = caseOf("streamed one by one").body.replace(
  /(events-per-write-1)/,
  `$1${PACE.replace("50", `${EVERY_MS}`)}`,
);
const BURST = caseOf("streamed in bursts").body;
const WHOLE = caseOf("whole").body;

function caseOf(what: string): Case {
  return CASES.find((one) => one.name === `${CLIENT}, ${what}`) as Case;
}

function part(file: string): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)));
}

function residentBytes({ pids }: Running): number {
  const kb = pids.map((pid) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]));
  return kb.reduce((sum, one) => sum + one, 0) * 1_024;
}

const spentUs = ({ pids }: Running): number => pids.reduce((sum, pid) => sum + cpuUs(pid), 0);

const upstream = part("upstream.ts");
const load = part("load.ts");
const rows: string[] = [];
try {
  const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
  for (const name of [BARE_PROXY, "tollgate, embedded"]) {
    const subject = SUBJECTS.find((one) => one.name === name);
    if (!subject) throw new Error(`no subject is called "${name}"`);
    const shape = { payers: PAYERS, concurrency: Math.max(STREAMS, WARM_UP) };
    const command = values.executable === undefined ? {} : { command: [values.executable] };
    const running = await subject.start({ upstreamPort: port, profileDir: undefined, shape, ...command });
    try {
      rows.push(await measured(name, running));
    } finally {
      await running.stop();
    }
  }
} finally {
  upstream.disconnect();
  load.disconnect();
}
const { cores, cpu, linux, node } = machineFacts();
process.stdout.write(
  `\n${cores} cores (${cpu}), Linux ${linux}, Node ${node}; ${STREAMS} streams (${CLIENT}), an event every ${EVERY_MS} ms\n\n`,
);
process.stdout.write(
  "| subject | idle, MB | per open stream, KB | of one core | CPU us per event | after requests, MB |\n",
);
process.stdout.write(`|---|---|---|---|---|---|\n${rows.join("\n")}\n`);

async function measured(name: string, running: Running): Promise<string> {
  await setTimeout(IDLE_AFTER_MS);
  const idle = residentBytes(running);
  await send(running, BURST, WARM_UP, WARM_UP);
  await setTimeout(IDLE_AFTER_MS);
  const before = { bytes: residentBytes(running), us: spentUs(running), ms: performance.now() };
  let most = 0;
  const sampler = setInterval(() => {
    most = Math.max(most, residentBytes(running));
  }, SAMPLE_MS);
  await send(running, STREAM, STREAMS, STREAMS);
  clearInterval(sampler);
  const us = spentUs(running) - before.us;
  const seconds = (performance.now() - before.ms) / 1_000;
  await send(running, WHOLE, REQUESTS, 32);
  await setTimeout(IDLE_AFTER_MS);
  const figures = [
    (idle / 1e6).toFixed(0),
    ((most - before.bytes) / STREAMS / 1_024).toFixed(1),
    `${((100 * us) / US_PER_S / seconds).toFixed(0)} %`,
    (us / STREAMS / STREAM_EVENTS).toFixed(1),
    (residentBytes(running) / 1e6).toFixed(0),
  ];
  return `| ${[name, ...figures].join(" | ")} |`;
}

async function send({ url, key, keys }: Running, body: string, requests: number, connections: number): Promise<void> {
  const answered = once(load, "message");
  load.send({ url: url + PATH, key, keys, body, requests, connections, refusable: false } satisfies Load);
  const [{ problem }] = (await answered) as [LoadResult];
  if (problem !== undefined) throw new Error(problem);
}
