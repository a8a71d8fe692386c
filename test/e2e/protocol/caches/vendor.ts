/**
 * A model server with the prompt caches that vendors publish, and an agent's script as its model. What it reads from a
 * cache, writes and counts depends only on the bytes that it receives. The rules are those of docs/prompt-caches.md,
 * which names their sources.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Protocol, protocolOfPath } from "../../../../src/values/protocol.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Input tokens of one or several requests: read from a cache, written to it, or neither. */
export interface InputCount {
  readonly read: number;
  readonly written: number;
  readonly fresh: number;
}

export interface CachingVendor {
  /** `http://127.0.0.1:port/v1`. */
  readonly url: string;
  /** The usage of each request, with its body. */
  readonly seen: readonly { readonly protocol: Protocol; readonly body: Json; readonly count: InputCount }[];
  /** Advances the time of the caches. */
  pass(seconds: number): void;
  close(): Promise<void>;
}

const CHARS_PER_TOKEN = 4;
const tokensOf = (text: string) => Math.ceil(text.length / CHARS_PER_TOKEN);

/** What the server refuses, or the count of a request. */
type Cache = (body: Json, nowS: number) => InputCount | { readonly refused: string };

/** Starts a server of all three protocols; each protocol has a separate cache. */
export async function startCachingVendor(): Promise<CachingVendor> {
  const caches: Readonly<Record<Protocol, Cache>> = {
    chat: prefixCache(chatPrompt),
    messages: breakpointCache(),
    responses: prefixCache(responsesPrompt),
  };
  const seen: { protocol: Protocol; body: Json; count: InputCount }[] = [];
  let nowS = 0;
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const protocol = protocolOfPath(req.url ?? "")?.name ?? "chat";
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Json;
    const count = caches[protocol](body, nowS);
    if ("refused" in count) {
      res.writeHead(400, { "content-type": "application/json" });
      res.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: count.refused } }));
      return;
    }
    seen.push({ protocol, body, count });
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify(REPLIES[protocol](body, count)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    pass: (seconds) => {
      nowS += seconds;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/* ---------------------------------------------------------------------------------------------- messages: breakpoints */

const BREAKPOINTS_MAX = 4;
const LOOKBACK_BLOCKS = 20;
const MIN_TOKENS = 1_024;
const LIFE_S = { short: 300, long: 3_600 };

interface Block {
  readonly text: string;
  readonly mark: Json | undefined;
}

/** Prefixes that end at a breakpoint are cached, and found from a breakpoint at most 20 blocks later. */
function breakpointCache(): Cache {
  const entries = new Map<string, { untilS: number; lifeS: number }>();
  return (body, nowS) => {
    const blocks = blocksOf(body);
    const fault = breakpointFault(body);
    if (fault !== undefined) return { refused: fault };
    const ends: { readonly hash: string; readonly tokens: number }[] = [];
    let hash = String(body.model);
    let tokens = 0;
    for (const { text } of blocks) {
      hash = createHash("sha256").update(`${hash}\n${text}`).digest("hex");
      tokens += tokensOf(text);
      ends.push({ hash, tokens });
    }
    let read = 0;
    let cached = 0;
    for (const [index, { mark }] of blocks.entries()) {
      const end = ends[index];
      if (mark === undefined || end === undefined || end.tokens < MIN_TOKENS) continue;
      cached = end.tokens;
      for (let back = index; back >= 0 && back > index - LOOKBACK_BLOCKS; back--) {
        const found = entries.get(ends[back]?.hash ?? "");
        if (found === undefined || found.untilS <= nowS) continue;
        found.untilS = nowS + found.lifeS;
        read = Math.max(read, ends[back]?.tokens ?? 0);
        break;
      }
    }
    for (const [index, { mark }] of blocks.entries()) {
      const end = ends[index];
      if (mark === undefined || end === undefined || end.tokens < MIN_TOKENS) continue;
      const lifeS = mark.ttl === "1h" ? LIFE_S.long : LIFE_S.short;
      entries.set(end.hash, { untilS: nowS + lifeS, lifeS });
    }
    return { read, written: Math.max(0, cached - read), fresh: tokens - Math.max(cached, read) };
  };
}

/** Tools, system, messages, in this order. What changes only the messages' level is between system and messages. */
function blocksOf(body: Json): readonly Block[] {
  const settings = { thinking: body.thinking, choice: body.tool_choice };
  const blocks: Block[] = [...list(body.tools), ...contentOf(body.system)].map((block) => blockOf(block, ""));
  let level = JSON.stringify(settings);
  for (const message of list(body.messages)) {
    for (const block of contentOf(message.content)) {
      blocks.push(blockOf(block, `${level}${message.role}:`));
      level = "";
    }
  }
  const last = blocks.at(-1);
  if (body.cache_control !== undefined && last) {
    blocks[blocks.length - 1] = { ...last, mark: last.mark ?? (body.cache_control as Json) };
  }
  return blocks;
}

function blockOf({ cache_control, ...block }: Json, before: string): Block {
  return { text: before + JSON.stringify(block), mark: (cache_control ?? undefined) as Json | undefined };
}

/** What a messages server refuses about a request's breakpoints. */
export function breakpointFault(body: Json): string | undefined {
  const marks = blocksOf(body).flatMap(({ mark }) => (mark === undefined ? [] : [mark.ttl === "1h" ? "1h" : "5m"]));
  if (marks.length > BREAKPOINTS_MAX) {
    return `A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`;
  }
  const short = marks.indexOf("5m");
  return short >= 0 && marks.lastIndexOf("1h") > short
    ? "a ttl='1h' block must not come after a ttl='5m' block"
    : undefined;
}

/* -------------------------------------------------------------------------------------- chat and responses: prefixes */

const PREFIX_MIN_TOKENS = 1_024;
const PREFIX_STEP_TOKENS = 128;
/** A request goes to a machine by the beginning of its prompt and its key. */
const ROUTED_TOKENS = 256;
/** Requests per minute with one prefix and key above which further machines are used. */
const MACHINE_PER_MINUTE = 15;
const PREFIX_LIFE_S = 300;

interface Kept {
  readonly prompt: string;
  readonly atS: number;
}

/** The longest prefix that the machine has seen, in steps of 128 tokens from 1,024 on. */
function prefixCache(promptOf: (body: Json) => string): Cache {
  const machines = new Map<string, Kept[]>();
  const arrivals = new Map<string, number[]>();
  return (body, nowS) => {
    const prompt = promptOf(body);
    const route = `${body.model}\n${body.prompt_cache_key ?? ""}\n${prompt.slice(0, ROUTED_TOKENS * CHARS_PER_TOKEN)}`;
    const recent = (arrivals.get(route) ?? []).filter((atS) => atS > nowS - 60);
    arrivals.set(route, [...recent, nowS]);
    const used = Math.ceil((recent.length + 1) / MACHINE_PER_MINUTE);
    // Which of several machines answers is random to the client; a digest of the prompt serves as well, and is
    // deterministic.
    const drawn = createHash("sha256").update(prompt).digest().readUInt32BE(0) % used;
    const machine = `${route}\n${drawn}`;
    const kept = (machines.get(machine) ?? []).filter(({ atS }) => atS > nowS - PREFIX_LIFE_S);
    machines.set(machine, [...kept, { prompt, atS: nowS }]);
    const longest = Math.max(0, ...kept.map((one) => commonLength(one.prompt, prompt)));
    const steps = Math.floor(longest / CHARS_PER_TOKEN / PREFIX_STEP_TOKENS) * PREFIX_STEP_TOKENS;
    const read = steps >= PREFIX_MIN_TOKENS ? steps : 0;
    return { read, written: 0, fresh: tokensOf(prompt) - read };
  };
}

function commonLength(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let length = 0;
  while (length < most && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

function chatPrompt(body: Json): string {
  return [...list(body.tools), ...list(body.messages)].map((part) => JSON.stringify(part)).join("\n");
}

function responsesPrompt(body: Json): string {
  const input = [...list(body.tools), { instructions: body.instructions }, ...list(body.input)];
  return input.map((part) => JSON.stringify(part)).join("\n");
}

/* -------------------------------------------------------------------------------------------------- the agent's model */

/** A tool call, or the end of a task. */
interface Step {
  readonly text: string | undefined;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: Json }[];
}

/** The results of one task: one call, one call, two at once. */
export const RESULTS_PER_TASK = 4;

/**
 * What the model does next depends on how many tasks and tool results the conversation has. @param told tasks and
 * results in the conversation.
 */
export function stepAfter(told: number): Step {
  const call = (nth: number) => ({
    id: `call_${told}_${nth}_0123456789abcdef`,
    name: `tool_${(told + nth) % 10}`,
    input: {
      path: `src/part-${told}/file-${nth}.ts`,
      reason: `To see what part ${told} does with it before changing it.`,
    },
  });
  const place = (told - 1) % (RESULTS_PER_TASK + 1);
  if (place === 0) return { text: `I shall look at part ${told} first.`, calls: [call(0)] };
  if (place === 1) return { text: undefined, calls: [call(0)] };
  if (place === 2) return { text: "Both of these matter.", calls: [call(0), call(1)] };
  return { text: `Part ${told} is done: what was asked for is in place, and nothing else was changed.`, calls: [] };
}

const REPLIES: Readonly<Record<Protocol, (body: Json, count: InputCount) => Json>> = {
  chat(body, { read, written, fresh }) {
    const told = list(body.messages).filter(({ role }) => role === "user" || role === "tool").length;
    const { text, calls } = stepAfter(told);
    const tool_calls = calls.map(({ id, name, input }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
    }));
    return {
      id: `chatcmpl-${told}`,
      object: "chat.completion",
      created: 0,
      model: body.model,
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: text ?? null, ...(calls.length > 0 ? { tool_calls } : {}) },
          finish_reason: calls.length > 0 ? "tool_calls" : "stop",
        },
      ],
      usage: {
        prompt_tokens: read + written + fresh,
        completion_tokens: 50,
        total_tokens: read + written + fresh + 50,
        prompt_tokens_details: { cached_tokens: read },
      },
    };
  },
  messages(body, { read, written, fresh }) {
    const told = list(body.messages)
      .filter(({ role }) => role === "user")
      .flatMap(({ content }) => contentOf(content)).length;
    const { text, calls } = stepAfter(told);
    return {
      id: `msg_${told}`,
      type: "message",
      role: "assistant",
      model: body.model,
      content: [
        ...(text === undefined ? [] : [{ type: "text", text }]),
        ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
      ],
      stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: fresh,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
        output_tokens: 50,
      },
    };
  },
  responses(body, { read, written, fresh }) {
    const told = list(body.input).filter(({ type, role }) => role === "user" || type === "function_call_output").length;
    const { text, calls } = stepAfter(told);
    return {
      id: `resp_${told}`,
      object: "response",
      created_at: 0,
      status: "completed",
      model: body.model,
      output: [
        ...(text === undefined
          ? []
          : [
              {
                type: "message",
                id: `msg_${told}`,
                role: "assistant",
                status: "completed",
                content: [{ type: "output_text", text, annotations: [] }],
              },
            ]),
        ...calls.map(({ id, name, input }) => ({
          type: "function_call",
          id: `fc_${id}`,
          call_id: id,
          name,
          arguments: JSON.stringify(input),
          status: "completed",
        })),
      ],
      usage: {
        input_tokens: read + written + fresh,
        input_tokens_details: { cached_tokens: read },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: read + written + fresh + 50,
      },
    };
  },
};

function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

/** Content is a text or a list of blocks. */
function contentOf(value: unknown): readonly Json[] {
  return typeof value === "string" ? [{ type: "text", text: value }] : list(value);
}
