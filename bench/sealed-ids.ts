/**
 * `node bench/sealed-ids.ts [--rounds 15] [--steps 6]`: the cost of ids that clients may refer to, on a responses upstream.
 *
 * 1. CPU time of the conversion per event, for a stream of 200 deltas in bursts of ten. Three clients: one that sends `store: false`
 *    (nothing is sealed), one that does not (ids contain their items), and one on a `stateful` upstream (ids are wrapped). Each with its own
 *    output limit, and without one, in which case everything delivered is kept. Median and quartiles of rounds in turn, and the ratio to
 *    the first, round by round.
 * 2. Bytes of a tool loop of the AI SDK: reasoning, a text and two parallel calls in each step.
 *
 * The figures are in docs/decisions/references-carry-what-they-name.md.
 */
import process from "node:process";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { readEnvelope } from "../src/accept/envelope.ts";
import { openExchange } from "../src/convert/bridge.ts";
import { contextOf } from "../src/request/context.ts";
import { createSealing } from "../src/request/sealing.ts";
import { defaultCapabilities } from "../src/values/catalog.ts";
import { isRefusal } from "../src/values/errors.ts";
import type { AccountTag } from "../src/values/key.ts";
import { Secret } from "../src/values/secret.ts";
import { systemClock } from "../src/values/time.ts";
import { startKeeping } from "../test/e2e/protocol/stateful/rig.ts";
import { programOptions } from "../test/rig/program-options.ts";

const { values } = programOptions({
  options: { rounds: { type: "string", default: "15" }, steps: { type: "string", default: "6" } },
});
const ROUNDS = Number(values.rounds);
const STEPS = Number(values.steps);
const DELTAS = 200;
const STREAMS_PER_ROUND = 60;
const BURST = 10;

type Setting = "store: false" | "sealed" | "wrapped";
const SETTINGS: readonly Setting[] = ["store: false", "sealed", "wrapped"];

// --------------------------------------------------------------------------------------------------------- CPU per event

const context = contextOf(
  { clock: systemClock, sealing: createSealing([new Secret("a-sealing-key-of-the-measurement")]) },
  { tag: "0123456789" as AccountTag },
);

function streamPieces(): readonly Buffer[] {
  let number = 0;
  const frame = (event: Readonly<Record<string, unknown>>) =>
    `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: number++ })}\n\n`;
  const id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef01";
  const item_id = "msg_0123456789abcdef0123456789abcdef0123456789abcdef01";
  const place = { item_id, output_index: 0, content_index: 0 };
  const words = Array.from({ length: DELTAS }, (_, index) => ` word${index % 10}`);
  const text = words.join("");
  const part = { type: "output_text", text, annotations: [], logprobs: [] };
  const response = { id, object: "response", model: "bench", output: [] as unknown[] };
  const item = { id: item_id, type: "message", role: "assistant" };
  const done = { ...item, status: "completed", content: [part] };
  const usage = { input_tokens: 50, output_tokens: DELTAS, total_tokens: 50 + DELTAS };
  const frames = [
    frame({ type: "response.created", response: { ...response, status: "in_progress" } }),
    frame({
      type: "response.output_item.added",
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    }),
    frame({ type: "response.content_part.added", ...place, part: { ...part, text: "" } }),
    ...words.map((delta) => frame({ type: "response.output_text.delta", ...place, delta, logprobs: [] })),
    frame({ type: "response.output_text.done", ...place, text, logprobs: [] }),
    frame({ type: "response.content_part.done", ...place, part }),
    frame({ type: "response.output_item.done", output_index: 0, item: done }),
    frame({ type: "response.completed", response: { ...response, status: "completed", output: [done], usage } }),
  ];
  const pieces: Buffer[] = [];
  for (let at = 0; at < frames.length; at += BURST) pieces.push(Buffer.from(frames.slice(at, at + BURST).join("")));
  return pieces;
}

const PIECES = streamPieces();
const EVENTS = DELTAS + 7;

function runStreams(setting: Setting, openEnded: boolean, streams: number): void {
  const body = {
    model: "bench",
    input: "hello",
    stream: true,
    ...(setting === "store: false" ? { store: false } : {}),
  };
  const read = readEnvelope("responses", Buffer.from(JSON.stringify(body)));
  if (isRefusal(read)) throw new Error(read.cause);
  const route = {
    upstream: "east",
    protocol: "responses" as const,
    upstreamModel: "bench",
    capabilities: defaultCapabilities("responses"),
    maxOutputTokens: 4_096,
    defaultOutputTokens: 4_096,
    stateful: setting === "wrapped",
  };
  const permitted = { outputLimit: undefined, openEnded, inputEstimate: 10, strict: false };
  for (let n = 0; n < streams; n++) {
    const exchange = openExchange(
      { protocol: "responses", model: "bench", stream: true, ...read },
      route,
      permitted,
      context,
    );
    if (isRefusal(exchange)) throw new Error(exchange.cause);
    const converter = exchange.stream();
    for (const piece of PIECES) converter.push(piece);
    if (!converter.ended) throw new Error("the stream has not ended");
  }
}

function cpuPerEventUs(setting: Setting, openEnded: boolean): number {
  const before = process.cpuUsage();
  runStreams(setting, openEnded, STREAMS_PER_ROUND);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (STREAMS_PER_ROUND * EVENTS);
}

function quantile(figures: readonly number[], share: number): number {
  const sorted = [...figures].sort((a, b) => a - b);
  return sorted[Math.round((sorted.length - 1) * share)] as number;
}

function measureCpu(): void {
  console.log("| ids | output limit | CPU us per event | x store: false |\n| --- | --- | --- | --- |");
  for (const openEnded of [false, true]) {
    const figures = new Map<Setting, number[]>(SETTINGS.map((setting) => [setting, []]));
    for (const setting of SETTINGS) runStreams(setting, openEnded, STREAMS_PER_ROUND * 2);
    for (let round = 0; round < ROUNDS; round++) {
      for (const setting of SETTINGS) figures.get(setting)?.push(cpuPerEventUs(setting, openEnded));
    }
    const base = figures.get("store: false") as number[];
    for (const [setting, all] of figures) {
      const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(all, share).toFixed(2));
      const ratio = quantile(
        all.map((one, round) => one / (base[round] as number)),
        0.5,
      );
      console.log(
        `| ${setting} | ${openEnded ? "none" : "its own"} | ${middle} (${low} - ${high}) | ${ratio.toFixed(2)} |`,
      );
    }
  }
}

// --------------------------------------------------------------------------------------------------------- bytes of a loop

interface Sums {
  requests: number;
  replies: number;
}

async function measureBytes(): Promise<void> {
  const here = await startKeeping();
  const { key } = await here.account({ usd: "100" });
  console.log(`\nA loop of ${STEPS} steps, bytes:\n`);
  console.log("| ids | replies | requests | x | replies | x |\n| --- | --- | --- | --- | --- | --- |");
  try {
    for (const stream of [false, true]) {
      let base: Sums | undefined;
      for (const setting of SETTINGS) {
        const sums = await loop(here, key, setting, stream);
        base ??= sums;
        const ratios = [sums.requests / base.requests, sums.replies / base.replies].map((one) => one.toFixed(2));
        const how = stream ? "streamed" : "whole";
        console.log(`| ${setting} | ${how} | ${sums.requests} | ${ratios[0]} | ${sums.replies} | ${ratios[1]} |`);
      }
    }
  } finally {
    await here.close();
  }
}

async function loop(
  here: Awaited<ReturnType<typeof startKeeping>>,
  key: string,
  setting: Setting,
  stream: boolean,
): Promise<Sums> {
  const sums: Sums = { requests: 0, replies: 0 };
  const counted: typeof fetch = async (address, init) => {
    sums.requests += Buffer.byteLength(String(init?.body ?? ""));
    const reply = await fetch(address, init);
    const bytes = new Uint8Array(await reply.arrayBuffer());
    sums.replies += bytes.length;
    return new Response(bytes, { status: reply.status, headers: reply.headers });
  };
  const openai = createOpenAI({ baseURL: `${here.url}/v1`, apiKey: key, fetch: counted });
  for (let step = 1; step < STEPS; step++) {
    const call = (part: string) => ({
      id: `call_${step}${part}`,
      name: "look",
      arguments: { path: `src/${part}/file-${step}.ts` },
    });
    here.simulator.program({
      thinking: "The next file has to be looked at before anything is changed. ".repeat(3),
      text: "I look at both of them. ",
      tools: [call("a"), call("b")],
    });
  }
  here.simulator.program({ text: "All is well. ".repeat(40) });
  const asked = {
    model: openai.responses(setting === "wrapped" ? "responses-1" : "plain-1"),
    prompt: "Is all well?",
    tools: {
      look: tool({
        description: "Looks at a file.",
        inputSchema: jsonSchema<{ path: string }>({ type: "object", properties: { path: { type: "string" } } }),
        execute: async ({ path }) => `export const name = "${path}";\n`.repeat(20),
      }),
    },
    stopWhen: stepCountIs(STEPS),
    maxRetries: 0,
    providerOptions: {
      openai: {
        reasoningEffort: "high",
        forceReasoning: true,
        ...(setting === "store: false" ? { store: false, include: ["reasoning.encrypted_content"] } : {}),
      },
    },
  };
  const steps = stream ? await streamText(asked).steps : (await generateText(asked)).steps;
  if (steps.length !== STEPS) throw new Error(`${steps.length} steps`);
  return sums;
}

measureCpu();
await measureBytes();
