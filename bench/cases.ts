/**
 * What is measured: one row is one kind of work, the same for every subject. A new case is a new row here.
 */
import type { Protocol } from "../src/values/protocol.ts";

/** A key that nobody has, or one whose group allows one request a minute. */
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
  /** Whose key the request has; undefined: one that may do what it asks for. */
  readonly key?: KeyKind;
}

/** Events of one stream, the terminal ones included. */
export const STREAM_EVENTS = 200;
/** Events in one write of the upstream where they come in bursts. */
const BURST_EVENTS = 10;
/** Streams at once where each takes its time, and the time between two events of one of them. */
const PACED_STREAMS = 500;
export const PACE = " every-50-ms";

/** About 2 KB: a system text, three turns and a few options, as a small chat client sends them. */
function chatRequest(stream: boolean, eventsPerWrite: number, pace = ""): string {
  const sentence = "The quick brown fox jumps over the lazy dog and runs along the river until the sun goes down. ";
  return JSON.stringify({
    model: "bench",
    max_tokens: 512,
    temperature: 0.7,
    messages: [
      { role: "system", content: sentence.repeat(6) },
      { role: "user", content: sentence.repeat(4) },
      { role: "assistant", content: sentence.repeat(6) },
      { role: "user", content: sentence.repeat(3) },
    ],
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    // The upstream reads its instructions here; nobody else looks at it.
    user: `events-per-write-${eventsPerWrite}${pace}`,
  });
}

/** The same conversation as a messages client writes it; the model's server speaks chat completions. */
function messagesRequest(stream: boolean, eventsPerWrite: number, pace = ""): string {
  const sentence = "The quick brown fox jumps over the lazy dog and runs along the river until the sun goes down. ";
  return JSON.stringify({
    model: "bench",
    max_tokens: 512,
    temperature: 0.7,
    // Here the upstream's instructions survive the translation.
    system: `${sentence.repeat(6)}events-per-write-${eventsPerWrite}${pace}`,
    messages: [
      { role: "user", content: sentence.repeat(4) },
      { role: "assistant", content: sentence.repeat(6) },
      { role: "user", content: sentence.repeat(3) },
    ],
    ...(stream ? { stream: true } : {}),
  });
}

const messages = { protocol: "messages", path: "/v1/messages" } as const;
const chat = { protocol: "chat", path: "/v1/chat/completions" } as const;
const stream = { unit: "event", unitsPerRequest: STREAM_EVENTS } as const;
const paced = { requests: PACED_STREAMS, connections: PACED_STREAMS } as const;
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
  {
    name: "messages to chat, streamed in bursts",
    ...messages,
    ...stream,
    body: messagesRequest(true, BURST_EVENTS),
    requests: 1_500,
  },
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
