/**
 * A model server that costs next to nothing: every reply is made once and then only written. Runs in its own process, started by `run.ts`;
 * sends its port to its parent. It speaks chat completions. Its streams are in the protocol of the requested model, whatever the path,
 * because a proxy that does not translate keeps the client's path.
 *
 * The member `user` of the request says how many events one write has (`events-per-write-10`), and how many milliseconds pass between writes
 * (`every-50-ms`; otherwise a turn of the event loop).
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Protocol } from "../src/values/protocol.ts";
import { BENCH_MODELS, STREAM_EVENTS } from "./cases.ts";

/** Longer than any idle timer in front of it, so that it never closes a connection that is about to be used. */
const KEEP_ALIVE_MS = 300_000;

const USAGE = { prompt_tokens: 480, completion_tokens: 198, total_tokens: 678 };
const HEAD = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_767_225_600, model: "bench" };

const WHOLE = Buffer.from(
  JSON.stringify({
    ...HEAD,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "Lorem ipsum ".repeat(80) }, finish_reason: "stop" }],
    usage: USAGE,
  }),
);
const WHOLE_HEADERS = { "content-type": "application/json", "content-length": String(WHOLE.length) };
const STREAM_HEADERS = { "content-type": "text/event-stream" };

/** The events of one stream: text, a finish, the usage, the end. */
function chatEvents(): string[] {
  const chunk = (delta: object, finish: string | null) =>
    JSON.stringify({ ...HEAD, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null });
  const texts = wordsOf(3).map((content) => chunk({ content }, null));
  const last = [chunk({}, "stop"), JSON.stringify({ ...HEAD, choices: [], usage: USAGE }), "[DONE]"];
  return [...texts, ...last].map((data) => `data: ${data}\n\n`);
}

/** The same from a messages server. */
function messagesEvents(): string[] {
  const usage = { input_tokens: USAGE.prompt_tokens, output_tokens: 1 };
  const message = { id: "msg_bench", type: "message", role: "assistant", model: "bench", content: [], usage };
  const delta = (text: string) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
  return [
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...wordsOf(5).map(delta),
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: USAGE.completion_tokens },
    },
    { type: "message_stop" },
  ].map(typedFrame);
}

/** The same from a responses server. */
function responsesEvents(): string[] {
  const words = wordsOf(8);
  const place = { item_id: "msg_bench", output_index: 0, content_index: 0 };
  const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
  const item = (status: string, content: readonly object[]) => ({
    id: "msg_bench",
    type: "message",
    role: "assistant",
    status,
    content,
  });
  const response = (status: string, output: readonly object[], usage: object | null) => ({
    id: "resp_bench",
    object: "response",
    created_at: HEAD.created,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: "bench",
    output,
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    usage,
  });
  const text = words.join("");
  const done = item("completed", [part(text)]);
  const usage = {
    input_tokens: USAGE.prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: USAGE.completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: USAGE.total_tokens,
  };
  return [
    { type: "response.created", response: response("in_progress", [], null) },
    { type: "response.in_progress", response: response("in_progress", [], null) },
    { type: "response.output_item.added", output_index: 0, item: item("in_progress", []) },
    { type: "response.content_part.added", ...place, part: part("") },
    ...words.map((delta) => ({ type: "response.output_text.delta", ...place, delta, logprobs: [] })),
    { type: "response.output_text.done", ...place, text, logprobs: [] },
    { type: "response.content_part.done", ...place, part: part(text) },
    { type: "response.output_item.done", output_index: 0, item: done },
    { type: "response.completed", response: response("completed", [done], usage) },
  ].map((event, sequence_number) => typedFrame({ ...event, sequence_number }));
}

/** As many pieces of text as give STREAM_EVENTS together with this many other events. */
function wordsOf(otherEvents: number): string[] {
  return Array.from({ length: STREAM_EVENTS - otherEvents }, (_, i) => ` word${i}`);
}

function typedFrame(event: { readonly type: string; readonly [member: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

const EVENTS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: chatEvents(),
  messages: messagesEvents(),
  responses: responsesEvents(),
};
const writesByKind = new Map<string, readonly Buffer[]>();

function writesOf(protocol: Protocol, eventsPerWrite: number): readonly Buffer[] {
  const kind = `${protocol} ${eventsPerWrite}`;
  const known = writesByKind.get(kind);
  if (known) return known;
  const writes: Buffer[] = [];
  const events = EVENTS[protocol];
  for (let i = 0; i < events.length; i += eventsPerWrite) {
    writes.push(Buffer.from(events.slice(i, i + eventsPerWrite).join("")));
  }
  writesByKind.set(kind, writes);
  return writes;
}

/** The protocol of the model that a body asks for. */
function protocolOf(body: string): Protocol {
  const asked = (Object.keys(BENCH_MODELS) as Protocol[]).find((protocol) =>
    body.includes(`"model":"${BENCH_MODELS[protocol]}"`),
  );
  return asked ?? "chat";
}

function stream(res: ServerResponse, writes: readonly Buffer[], everyMs: number): void {
  res.writeHead(200, STREAM_HEADERS);
  let next = 0;
  const step = (): void => {
    if (res.destroyed) return;
    res.write(writes[next++] as Buffer);
    if (next === writes.length) res.end();
    else if (everyMs > 0) setTimeout(step, everyMs);
    else setImmediate(step);
  };
  step();
}

const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
  const pieces: Buffer[] = [];
  req.on("data", (piece: Buffer) => pieces.push(piece));
  req.on("end", () => {
    // Acts as a trace collector: spans are accepted and dropped.
    if (req.url === "/v1/traces") return res.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    const body = Buffer.concat(pieces).toString("latin1");
    if (!body.includes('"stream":true')) return res.writeHead(200, WHOLE_HEADERS).end(WHOLE);
    const [, eventsPerWrite = 1, everyMs = 0] = /events-per-write-(\d+)(?: every-(\d+)-ms)?/.exec(body) ?? [];
    stream(res, writesOf(protocolOf(body), Number(eventsPerWrite)), Number(everyMs));
  });
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
);
process.on("disconnect", () => process.exit(0));
