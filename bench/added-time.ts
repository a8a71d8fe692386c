/**
 * `node bench/added-time.ts`: the time in milliseconds that a subject adds to a request, compared with no server in between:
 *
 * - *whole, alone*: a complete reply, one request at a time;
 * - *first token*: the first bytes of a stream; streams arrive at random, at a rate that keeps half of one core busy.
 *
 * Medians of the rounds; every subject has its turn in each round. `--rounds N`, `--requests N` (of one round).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { programOptions } from "../test/rig/program-options.ts";
import { CASES } from "./cases.ts";
import { cpuUs } from "./cpu.ts";
import { machineFacts } from "./machine.ts";
import { BARE_PROXY, type Running, SUBJECTS } from "./subjects.ts";

const { values } = programOptions({
  options: {
    rounds: { type: "string", default: "5" },
    requests: { type: "string", default: "400" },
  },
});
/** The others are compared with the first one. */
const TIMED: ReadonlySet<string> = new Set(["direct", BARE_PROXY, "tollgate, embedded", "tollgate, redis"]);
const ROUNDS = Number(values.rounds);
const REQUESTS = Number(values.requests);
/** Requests before the first round, so that code is compiled. */
const WARM_UP = 25_000;
const WARM_UP_AT_ONCE = 32;
/** Streams whose cost shows how many a core can handle. */
const CALIBRATED_BY = 200;
/** Share of one core that is busy while first tokens are timed. */
const LOAD = 0.5;
const US_PER_MS = 1_000;

const WHOLE = bodyOf("chat, whole");
const STREAM = bodyOf("chat, streamed in bursts");

interface Subject {
  readonly name: string;
  readonly running: Running;
  readonly agent: Agent;
}

interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

function bodyOf(name: string): string {
  const found = CASES.find((one) => one.name === name);
  if (!found) throw new Error(`no case is called "${name}"`);
  return found.body;
}

/** Sends one request. @returns milliseconds until the first bytes of the answer's body, and until its end. */
function ask({ running, agent }: Subject, body: string): Promise<{ firstMs: number; endMs: number }> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    let firstMs: number | undefined;
    const headers = {
      authorization: `Bearer ${running.key}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const asked = request(`${running.url}/v1/chat/completions`, { method: "POST", agent, headers }, (reply) => {
      if (reply.statusCode !== 200) reject(new Error(`${running.url} answered ${reply.statusCode}`));
      reply.on("data", () => {
        firstMs ??= performance.now() - startMs;
      });
      reply.on("end", () => resolve({ firstMs: firstMs ?? Number.NaN, endMs: performance.now() - startMs }));
      reply.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

async function warmUp(subject: Subject): Promise<void> {
  let left = WARM_UP;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await ask(subject, left % 10 === 0 ? STREAM : WHOLE);
  };
  await Promise.all(Array.from({ length: WARM_UP_AT_ONCE }, worker));
}

async function wholeAlone(subject: Subject): Promise<Quantiles> {
  const tookMs: number[] = [];
  for (let i = 0; i < REQUESTS; i++) tookMs.push((await ask(subject, WHOLE)).endMs);
  return quantiles(tookMs);
}

/** @param everyMs time between two streams, on average. */
async function firstToken(subject: Subject, everyMs: number): Promise<Quantiles> {
  const asked: Promise<{ firstMs: number }>[] = [];
  let dueMs = performance.now();
  while (asked.length < REQUESTS) {
    dueMs += -Math.log(1 - Math.random()) * everyMs;
    const restMs = dueMs - performance.now();
    if (restMs > 0) await setTimeout(restMs);
    asked.push(ask(subject, STREAM));
  }
  return quantiles((await Promise.all(asked)).map(({ firstMs }) => firstMs));
}

/** CPU time of one stream in microseconds, while several are running. */
async function streamCost(subject: Subject): Promise<number> {
  const usedUs = () => subject.running.pids.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const beforeUs = usedUs();
  let left = CALIBRATED_BY;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await ask(subject, STREAM);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return (usedUs() - beforeUs) / CALIBRATED_BY;
}

function quantiles(tookMs: readonly number[]): Quantiles {
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number;
  return { p50: at(0.5), p99: at(0.99) };
}

function median(figures: readonly number[]): number {
  return quantiles(figures).p50;
}

const upstream: ChildProcess = fork(fileURLToPath(new URL("./upstream.ts", import.meta.url)));
const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
const subjects: Subject[] = [];
try {
  for (const { name, start } of SUBJECTS) {
    if (!TIMED.has(name)) continue;
    const running = await start({ upstreamPort: port, profileDir: undefined });
    subjects.push({ name, running, agent: new Agent({ keepAlive: true, maxSockets: 512 }) });
  }
  const direct = subjects[0] as Subject;
  for (const subject of subjects) await warmUp(subject);
  const results = new Map(subjects.map(({ name }) => [name, { whole: [] as Quantiles[], first: [] as Quantiles[] }]));
  /** The same streams with the same timing, without a server in between; for each subject's own load. */
  const beside = new Map(subjects.map(({ name }) => [name, [] as Quantiles[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const subject of subjects) {
      results.get(subject.name)?.whole.push(await wholeAlone(subject));
      if (subject === direct) continue;
      const everyMs = (await streamCost(subject)) / US_PER_MS / LOAD;
      results.get(subject.name)?.first.push(await firstToken(subject, everyMs));
      beside.get(subject.name)?.push(await firstToken(direct, everyMs));
    }
  }
  const { cores, cpu, linux, node } = machineFacts();
  console.log(`${cores} cores (${cpu}), Linux ${linux}, Node ${node}; ${ROUNDS} rounds of ${REQUESTS}\n`);
  console.log(
    "| subject | whole, alone: p50, ms | p99 | added p50 | p99 | first token: p50, ms | p99 | added p50 | p99 |",
  );
  console.log("|---|---|---|---|---|---|---|---|---|");
  const plain = results.get(direct.name)?.whole ?? [];
  for (const [name, { whole, first }] of results) {
    const cells = [...columns(whole, plain), ...columns(first, beside.get(name) ?? [])];
    console.log(`| ${name} | ${cells.map((ms) => (Number.isNaN(ms) ? "-" : ms.toFixed(2))).join(" | ")} |`);
  }
} finally {
  await Promise.all(subjects.map(({ running }) => running.stop()));
  for (const { agent } of subjects) agent.destroy();
  upstream.disconnect();
}

/** p50 and p99, and by how much they are above those without a server in between, in the same round. */
function columns(own: readonly Quantiles[], without: readonly Quantiles[]): readonly number[] {
  if (own.length === 0) return [Number.NaN, Number.NaN, Number.NaN, Number.NaN];
  const of = (which: keyof Quantiles) => median(own.map((one) => one[which]));
  const added = (which: keyof Quantiles) =>
    median(own.map((one, i) => one[which] - (without[i]?.[which] ?? Number.NaN)));
  return [of("p50"), of("p99"), added("p50"), added("p99")];
}
