/**
 * A model server that costs next to nothing: every reply is made once and only written. A process of its own, started by
 * `run.ts`; sends its port to its parent.
 *
 * Streams are written so many events at a time as the member `user` of the request says (`events-per-write-10`), with a
 * turn of the loop between writes, or so many milliseconds (`every-50-ms`).
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { STREAM_EVENTS } from "./cases.ts";

/** Longer than any idle time in front of it, so that it never closes a connection that is about to be used. */
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
function streamEvents(): string[] {
  const chunk = (delta: object, finish: string | null) =>
    JSON.stringify({ ...HEAD, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null });
  const texts = Array.from({ length: STREAM_EVENTS - 3 }, (_, i) => chunk({ content: ` word${i}` }, null));
  const last = [chunk({}, "stop"), JSON.stringify({ ...HEAD, choices: [], usage: USAGE }), "[DONE]"];
  return [...texts, ...last].map((data) => `data: ${data}\n\n`);
}

const EVENTS = streamEvents();
const writesBySize = new Map<number, readonly Buffer[]>();

function writesOf(eventsPerWrite: number): readonly Buffer[] {
  const known = writesBySize.get(eventsPerWrite);
  if (known) return known;
  const writes: Buffer[] = [];
  for (let i = 0; i < EVENTS.length; i += eventsPerWrite) {
    writes.push(Buffer.from(EVENTS.slice(i, i + eventsPerWrite).join("")));
  }
  writesBySize.set(eventsPerWrite, writes);
  return writes;
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
    // A collector's part: spans are taken and forgotten.
    if (req.url === "/v1/traces") return res.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    const body = Buffer.concat(pieces).toString("latin1");
    if (!body.includes('"stream":true')) return res.writeHead(200, WHOLE_HEADERS).end(WHOLE);
    const [, eventsPerWrite = 1, everyMs = 0] = /events-per-write-(\d+)(?: every-(\d+)-ms)?/.exec(body) ?? [];
    stream(res, writesOf(Number(eventsPerWrite)), Number(everyMs));
  });
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on("disconnect", () => process.exit(0));
