/**
 * `node bench/large-bodies.ts`: how long a large body delays everyone else. While bodies of 1 MB and of 30 MB are sent to a gateway, one
 * after the other, its health check is called repeatedly, one call at a time: milliseconds of the slowest answer, as median over the bodies
 * (and slowest of all), compared with no body. `--bodies N`.
 *
 * Text is one long message; *many parts* is the slowest case for JSON: hundreds of thousands of small members.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { programOptions } from "../test/rig/program-options.ts";
import { machineFacts } from "./machine.ts";
import { type Running, SUBJECTS } from "./subjects.ts";

const { values } = programOptions({ options: { bodies: { type: "string", default: "9" } } });
const BODIES = Number(values.bodies);
const MB = 1_000_000;
/** Health checks before the measurement, and number of them when no body is sent. */
const WARM_UP = 2_000;

const BODIES_OF: Readonly<Record<string, () => string>> = {
  "1 MB, text": () => textOf(MB),
  "1 MB, many parts": () => partsOf(MB),
  "30 MB, text": () => textOf(30 * MB),
  "30 MB, many parts": () => partsOf(30 * MB),
};

function textOf(bytes: number): string {
  const content = "The quick brown fox jumps over the lazy dog. ".repeat(Math.floor(bytes / 45));
  return JSON.stringify({ model: "bench", max_tokens: 16, messages: [{ role: "user", content }] });
}

function partsOf(bytes: number): string {
  const turns = Array.from({ length: Math.floor(bytes / 32) }, () => ({ role: "user", content: "ab" }));
  return JSON.stringify({ model: "bench", max_tokens: 16, messages: turns });
}

interface Answer {
  readonly status: number;
  readonly ms: number;
}

function send(url: string, agent: Agent, body?: { readonly text: string; readonly key: string }): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const headers = body && { authorization: `Bearer ${body.key}`, "content-type": "application/json" };
    const asked = request(url, { method: body ? "POST" : "GET", agent, headers }, (reply) => {
      reply.resume();
      reply.on("end", () => resolve({ status: reply.statusCode ?? 0, ms: performance.now() - startMs }));
      reply.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body?.text);
  });
}

function part(file: string): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)));
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1] as number;
}

/** The slowest answer while `until` is under way. */
async function slowest(url: string, agent: Agent, until: Promise<unknown>): Promise<number> {
  let isOver = false;
  void until.finally(() => {
    isOver = true;
  });
  let most = 0;
  while (!isOver) most = Math.max(most, (await send(url, agent)).ms);
  return most;
}

const upstream = part("upstream.ts");
const asker = part("large-body.ts");
let running: Running | undefined;
try {
  const [{ port }] = (await once(upstream, "message")) as [{ port: number }];
  const subject = SUBJECTS.find(({ name }) => name === "tollgate, embedded");
  running = await subject?.start({ upstreamPort: port, profileDir: undefined });
  if (!running) throw new Error("no gateway");
  const { url, key } = running;
  const health = `${url}/v1/none`;
  const agent = new Agent({ keepAlive: true });
  let calm = 0;
  for (let i = 0; i < WARM_UP; i++) {
    const { ms } = await send(health, agent);
    if (i > WARM_UP / 2) calm = Math.max(calm, ms);
  }
  const { cores, cpu, linux, node } = machineFacts();
  process.stdout.write(`${cores} cores (${cpu}), Linux ${linux}, Node ${node}; ${BODIES} bodies of each kind\n\n`);
  process.stdout.write(`| body | status | slowest answer to others, ms | slowest of all, ms |\n|---|---|---|---|\n`);
  process.stdout.write(`| none | - | ${calm.toFixed(1)} | ${calm.toFixed(1)} |\n`);
  for (const [name, make] of Object.entries(BODIES_OF)) {
    const text = make();
    const figures: number[] = [];
    let status = 0;
    for (let i = 0; i < BODIES; i++) {
      asker.send({ url: `${url}/v1/chat/completions`, key, text });
      const answered = once(asker, "message");
      figures.push(await slowest(health, agent, answered));
      [{ status }] = (await answered) as [{ status: number }];
      await setImmediate();
    }
    const most = Math.max(...figures);
    process.stdout.write(`| ${name} | ${status} | ${median(figures).toFixed(1)} | ${most.toFixed(1)} |\n`);
  }
  agent.destroy();
} finally {
  await running?.stop();
  upstream.disconnect();
  asker.disconnect();
}
