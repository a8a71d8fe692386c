/**
 * `node bench/relay-time.ts [--rounds 200]`: how long a piece of a stream takes from the upstream's socket to the client's, in
 * each of the nine directions: a text, a reasoning, arguments, the text of a freeform call, and the end. Upstream, gateway and
 * client share one process, so their work is in the figures; `direct` is the same without a gateway. Microseconds, median
 * and 99th percentile. The figures are in docs/benchmarks.md.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol } from "../src/values/protocol.ts";
import { directionsConfig, modelOn } from "../test/e2e/protocol/directions/rig.ts";
import { startGatewayHere } from "../test/rig/gateway.ts";
import { programOptions } from "../test/rig/program-options.ts";

const { values } = programOptions({ options: { rounds: { type: "string", default: "200" } } });
const ROUNDS = Number(values.rounds);
const WARM_UP = 40;

type Kind = "text" | "reasoning" | "arguments" | "freeform";
const KINDS: readonly Kind[] = ["text", "reasoning", "arguments", "freeform"];

type Json = Readonly<Record<string, unknown>>;

/** What an upstream sends: the start of a stream of a kind, one more piece of it, and its end. */
interface Script {
  readonly opening: readonly Json[];
  piece(text: string): Json;
  readonly end: readonly (Json | "[DONE]")[];
}

const chunk = (delta: Json, finish_reason: string | null = null): Json => ({
  id: "x",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
});

const FREEFORM = '{"input":"';

const SCRIPTS: Readonly<Record<Protocol, (kind: Kind) => Script>> = {
  chat(kind) {
    const end = [
      chunk({}, "stop"),
      { id: "x", choices: [], usage: { prompt_tokens: 5, completion_tokens: 6 } },
      "[DONE]",
    ] as const;
    if (kind === "text") return { opening: [chunk({ content: "a" })], piece: (content) => chunk({ content }), end };
    if (kind === "reasoning") {
      return {
        opening: [chunk({ reasoning_content: "a" })],
        piece: (reasoning_content) => chunk({ reasoning_content }),
        end,
      };
    }
    const call = (more: Json, text: string) =>
      chunk({
        tool_calls: [{ index: 0, ...more, function: { ...(more.id ? { name: nameOf(kind) } : {}), arguments: text } }],
      });
    const first = kind === "freeform" ? FREEFORM : '{"q":"';
    return { opening: [call({ id: "c", type: "function" }, first)], piece: (text) => call({}, text), end };
  },
  messages(kind) {
    const blocks: Readonly<Record<Kind, readonly [Json, (text: string) => Json]>> = {
      text: [{ type: "text", text: "" }, (text) => ({ type: "text_delta", text })],
      reasoning: [
        { type: "thinking", thinking: "", signature: "" },
        (thinking) => ({ type: "thinking_delta", thinking }),
      ],
      arguments: [toolUse(kind), (partial_json) => ({ type: "input_json_delta", partial_json })],
      freeform: [toolUse(kind), (partial_json) => ({ type: "input_json_delta", partial_json })],
    };
    const [content_block, delta] = blocks[kind];
    const piece = (text: string) => ({ type: "content_block_delta", index: 0, delta: delta(text) });
    const usage = { input_tokens: 5, output_tokens: 1 };
    const start = {
      type: "message_start",
      message: { id: "m", type: "message", role: "assistant", content: [], usage },
    };
    const first = kind === "freeform" ? FREEFORM : kind === "arguments" ? '{"q":"' : "a";
    return {
      opening: [start, { type: "content_block_start", index: 0, content_block }, piece(first)],
      piece,
      end: [
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 6 } },
        { type: "message_stop" },
      ],
    };
  },
  responses(kind) {
    const place = { item_id: "i", output_index: 0 };
    const items: Readonly<Record<Kind, readonly [Json, Json]>> = {
      text: [
        { type: "message", id: "i", role: "assistant", content: [] },
        { type: "response.output_text.delta", ...place, content_index: 0 },
      ],
      reasoning: [
        { type: "reasoning", id: "i", summary: [] },
        { type: "response.reasoning_summary_text.delta", ...place, summary_index: 0 },
      ],
      arguments: [
        { type: "function_call", id: "i", call_id: "c", name: "f", arguments: "" },
        { type: "response.function_call_arguments.delta", ...place },
      ],
      freeform: [
        { type: "custom_tool_call", id: "i", call_id: "c", name: "patch", input: "" },
        { type: "response.custom_tool_call_input.delta", ...place },
      ],
    };
    const [item, delta] = items[kind];
    const usage = { input_tokens: 5, output_tokens: 6, total_tokens: 11 };
    const response = { id: "r", object: "response", status: "completed", output: [], usage };
    return {
      opening: [
        { type: "response.created", response: { id: "r", object: "response", status: "in_progress", output: [] } },
        { type: "response.output_item.added", output_index: 0, item },
        { ...delta, delta: kind === "arguments" ? '{"q":"' : "a" },
      ],
      piece: (text) => ({ ...delta, delta: text }),
      end: [{ type: "response.completed", response }],
    };
  },
};

function nameOf(kind: Kind): string {
  return kind === "freeform" ? "patch" : "f";
}

function toolUse(kind: Kind): Json {
  return { type: "tool_use", id: "c", name: nameOf(kind), input: {} };
}

function frame(payload: Json | "[DONE]"): string {
  if (payload === "[DONE]") return "data: [DONE]\n\n";
  return `${typeof payload.type === "string" ? `event: ${payload.type}\n` : ""}data: ${JSON.stringify(payload)}\n\n`;
}

/** The body that asks for a stream of this kind. */
function bodyOf(client: Protocol, upstream: Protocol, kind: Kind): string {
  const turn = [{ role: "user", content: "hello" }];
  const head = { model: modelOn(upstream), stream: true };
  const parameters = { type: "object" };
  if (client === "messages") {
    const thinking = kind === "reasoning" ? { type: "adaptive" } : undefined;
    return JSON.stringify({
      ...head,
      max_tokens: 4_000,
      messages: turn,
      thinking,
      tools: [{ name: "f", input_schema: parameters }],
    });
  }
  if (client === "chat") {
    const tools = [
      { type: "function", function: { name: "f", parameters } },
      ...(kind === "freeform" ? [{ type: "custom", custom: { name: "patch" } }] : []),
    ];
    return JSON.stringify({ ...head, messages: turn, stream_options: { include_usage: true }, tools });
  }
  const tools = [
    { type: "function", name: "f", strict: false, parameters },
    ...(kind === "freeform" ? [{ type: "custom", name: "patch" }] : []),
  ];
  return JSON.stringify({ ...head, input: turn, reasoning: { summary: "auto" }, tools });
}

/** A client's stream: returns what has arrived since the last call, and can wait for more. */
class Listener {
  #text = "";
  #ended = false;
  #wake: () => void = () => {};

  constructor(answer: IncomingMessage) {
    answer.setEncoding("utf8");
    answer.on("data", (piece: string) => {
      this.#text += piece;
      this.#wake();
    });
    answer.on("end", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  async hears(word: string): Promise<void> {
    while (!this.#text.includes(word)) {
      if (this.#ended) throw new Error(`the stream ended without ${word}: ${this.#text.slice(-600)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#text = "";
  }

  async ends(): Promise<void> {
    while (!this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** The upstream's side of the latest request. */
let asked: (response: ServerResponse) => void = () => {};
const upstreamServer = createServer((incoming, response) => {
  incoming.resume().on("end", () => asked(response));
});
upstreamServer.listen(0, "127.0.0.1");
await once(upstreamServer, "listening");
const upstreamUrl = `http://127.0.0.1:${(upstreamServer.address() as AddressInfo).port}/v1`;

const here = await startGatewayHere({ config: ({ dir }) => directionsConfig()({ upstreamUrl, dir }) });
const { key } = await here.account();

/** Microseconds for each piece of one kind, and for the ends. */
async function measured(url: string, client: Protocol, upstream: Protocol, kind: Kind): Promise<[number[], number[]]> {
  const pieces: number[] = [];
  const ends: number[] = [];
  const script = SCRIPTS[upstream](kind);
  for (let stream = 0; stream < 4; stream++) {
    const arrived = new Promise<ServerResponse>((resolve) => {
      asked = resolve;
    });
    const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
    const asking = request(url, { method: "POST", headers }).end(bodyOf(client, upstream, kind));
    const answered = once(asking, "response") as Promise<[IncomingMessage]>;
    const response = await arrived;
    response.socket?.setNoDelay(true);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(script.opening.map(frame).join(""));
    const listener = new Listener((await answered)[0]);
    for (let round = 0; round < (ROUNDS + WARM_UP) / 4; round++) {
      const word = `probe${stream}x${round}z`;
      const at = performance.now();
      response.write(frame(script.piece(word)));
      await listener.hears(word);
      if (stream > 0 || round >= WARM_UP) pieces.push((performance.now() - at) * 1_000);
    }
    const at = performance.now();
    response.end(script.end.map(frame).join(""));
    await listener.ends();
    ends.push((performance.now() - at) * 1_000);
  }
  return [pieces, ends];
}

function shown(samples: readonly number[]): string {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return `${at(0.5)} (${at(0.99)})`;
}

const rows: string[][] = [];
try {
  for (const client of PROTOCOL_NAMES) {
    for (const upstream of PROTOCOL_NAMES) {
      const ends: number[] = [];
      const cells: string[] = [];
      for (const kind of KINDS) {
        if (kind === "freeform" && (client === "messages" || (client === "chat" && upstream === "chat"))) {
          cells.push("-");
          continue;
        }
        const [pieces, endings] = await measured(here.url + PROTOCOLS[client].path, client, upstream, kind);
        ends.push(...endings);
        cells.push(shown(pieces));
      }
      rows.push([client, upstream, ...cells, shown(ends)]);
    }
  }
  const [pieces, endings] = await measured(upstreamUrl, "chat", "chat", "text");
  rows.push(["direct", "", shown(pieces), "", "", "", shown(endings)]);
} finally {
  await here.close();
  upstreamServer.close();
  upstreamServer.closeAllConnections();
}

process.stdout.write(
  `| client | upstream | text | reasoning | arguments | freeform | end |\n| ${"--- | ".repeat(7)}\n`,
);
for (const row of rows) process.stdout.write(`| ${row.join(" | ")} |\n`);
