/**
 * What is measured: one row is one kind of work, the same for every subject. A new case is a new row here.
 */
import type { Protocol } from "../src/values/protocol.ts";

/** An unknown key, or one whose group allows one request a minute. */
export type KeyKind = "unknown" | "limited";

export interface Case {
  readonly name: string;
  readonly protocol: Protocol;
  readonly path: string;
  /** The request as every subject and the upstream get it. */
  readonly body: string;
  /** What the CPU time is divided by: whole requests, or events that reached the client. */
  readonly unit: "request" | "event";
  readonly unitsPerRequest: number;
  /** Requests of one round, enough for about a second of a subject's CPU time, and for V8 to compile before the first one counts. */
  readonly requests: number;
  /** Connections that the load keeps busy; undefined: as many as in most cases. */
  readonly connections?: number;
  /** The kind of key; undefined: one that is allowed to do what it asks for. */
  readonly key?: KeyKind;
}

/** Events of one stream, the terminal ones included. */
export const STREAM_EVENTS = 200;
/** Events in one write of the upstream, for bursts. */
const BURST_EVENTS = 10;
/** Number of slow streams at once, and the time between two events of one of them. */
const PACED_STREAMS = 500;
export const PACE = " every-50-ms";

/** The model of the configuration whose server speaks a protocol. */
export const BENCH_MODELS: Readonly<Record<Protocol, string>> = {
  chat: "bench",
  messages: "bench-messages",
  responses: "bench-responses",
};

const SENTENCE = "The quick brown fox jumps over the lazy dog and runs along the river until the sun goes down. ";
const SYSTEM = SENTENCE.repeat(6);
const TURNS = [
  { role: "user", content: SENTENCE.repeat(4) },
  { role: "assistant", content: SENTENCE.repeat(6) },
  { role: "user", content: SENTENCE.repeat(3) },
] as const;

/** How a request is to be answered. */
interface Wanted {
  /** The protocol of the model's server. */
  readonly upstream: Protocol;
  readonly stream: boolean;
  readonly eventsPerWrite: number;
  readonly pace?: string;
}

/** About 2 KB: a system text, three turns and a few options, as a small client of the protocol sends them. */
const REQUESTS: Readonly<Record<Protocol, (wanted: Wanted) => object>> = {
  chat: ({ stream, upstream, ...wanted }) => ({
    model: BENCH_MODELS[upstream],
    max_tokens: 512,
    temperature: 0.7,
    // The benchmark's upstream reads its instructions here or in the text; nothing else reads them.
    messages: [{ role: "system", content: upstream === "chat" ? SYSTEM : instructed(wanted) }, ...TURNS],
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...(upstream === "chat" ? { user: instructions(wanted) } : {}),
  }),
  messages: ({ stream, upstream, ...wanted }) => ({
    model: BENCH_MODELS[upstream],
    max_tokens: 512,
    temperature: 0.7,
    system: instructed(wanted),
    messages: TURNS,
    ...(stream ? { stream: true } : {}),
  }),
  responses: ({ stream, upstream, ...wanted }) => ({
    model: BENCH_MODELS[upstream],
    max_output_tokens: 512,
    temperature: 0.7,
    instructions: instructed(wanted),
    input: TURNS,
    store: false,
    ...(stream ? { stream: true } : {}),
  }),
};

function instructions({ eventsPerWrite, pace = "" }: Pick<Wanted, "eventsPerWrite" | "pace">): string {
  return `events-per-write-${eventsPerWrite}${pace}`;
}

/** A system text with the instructions, which survive a translation there. */
function instructed(wanted: Pick<Wanted, "eventsPerWrite" | "pace">): string {
  return SYSTEM + instructions(wanted);
}

function bodyOf(client: Protocol, wanted: Wanted): string {
  return JSON.stringify(REQUESTS[client](wanted));
}

function chatRequest(stream: boolean, eventsPerWrite: number, pace = ""): string {
  return bodyOf("chat", { upstream: "chat", stream, eventsPerWrite, pace });
}

/** The model's server speaks chat completions. */
function messagesRequest(stream: boolean, eventsPerWrite: number, pace = ""): string {
  return bodyOf("messages", { upstream: "chat", stream, eventsPerWrite, pace });
}

const messages = { protocol: "messages", path: "/v1/messages" } as const;
const chat = { protocol: "chat", path: "/v1/chat/completions" } as const;
const CLIENTS = { chat, messages, responses: { protocol: "responses", path: "/v1/responses" } } as const;
const stream = { unit: "event", unitsPerRequest: STREAM_EVENTS } as const;
const paced = { requests: PACED_STREAMS, connections: PACED_STREAMS } as const;
/** A client of one protocol, a model's server of another, events that arrive faster than they are read. */
function translated(client: Protocol, upstream: Protocol): Case {
  const body = bodyOf(client, { upstream, stream: true, eventsPerWrite: BURST_EVENTS });
  return { name: `${client} to ${upstream}, streamed in bursts`, ...CLIENTS[client], ...stream, body, requests: 1_500 };
}

const refused = { body: chatRequest(false, 1), unit: "request", unitsPerRequest: 1, requests: 4_000 } as const;

export const CASES: readonly Case[] = [
  { name: "chat, whole", ...chat, body: chatRequest(false, 1), unit: "request", unitsPerRequest: 1, requests: 4_000 },
  { name: "chat, streamed in bursts", ...chat, ...stream, body: chatRequest(true, BURST_EVENTS), requests: 1_500 },
  { name: "chat, streamed one by one", ...chat, ...stream, body: chatRequest(true, 1), requests: 300 },
  {
    name: "messages to chat, whole",
    ...messages,
    body: messagesRequest(false, 1),
    unit: "request",
    unitsPerRequest: 1,
    requests: 3_000,
  },
  translated("messages", "chat"),
  translated("responses", "chat"),
  translated("chat", "messages"),
  translated("responses", "messages"),
  translated("chat", "responses"),
  translated("messages", "responses"),
  {
    name: "messages to chat, streamed one by one",
    ...messages,
    ...stream,
    body: messagesRequest(true, 1),
    requests: 200,
  },
  { name: "chat, paced", ...chat, ...stream, ...paced, body: chatRequest(true, 1, PACE) },
  { name: "messages to chat, paced", ...messages, ...stream, ...paced, body: messagesRequest(true, 1, PACE) },
  { name: "refused, unknown key", ...chat, ...refused, key: "unknown" },
  { name: "refused, rate limit", ...chat, ...refused, key: "limited" },
];
