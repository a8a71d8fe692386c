/** Small servers that send exactly the given bytes, and requests whose inspector accepts what a test says. */
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";
import type {
  Answered,
  BodySink,
  DispatchAsk,
  DispatchWarning,
  Inspector,
  ReplyFault,
  Unanswered,
} from "../../../src/dispatch/ask.ts";
import { createDispatcher, type Dispatcher } from "../../../src/dispatch/dispatcher.ts";
import { defaultCapabilities, type Route } from "../../../src/values/catalog.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { UpstreamSettings } from "../../../src/values/settings.ts";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { refusingPort } from "../../rig/refusing-port.ts";

export const UPSTREAM_KEY = "up-canary-0123456789";

/** An HTTP server on a free port of 127.0.0.1, closed with the test; gives its base URL. */
export async function httpServer(t: TestContext, listener: RequestListener): Promise<string> {
  return listening(t, createHttpServer(listener));
}

export interface RawRequest {
  readonly socket: Socket;
  /** The request as it was received, head and body. */
  readonly text: string;
  /** Which connection this is, from 1. */
  readonly connection: number;
}

/** A server of raw bytes: `answer` is called once a request is complete. */
export async function rawServer(t: TestContext, answer: (request: RawRequest) => void): Promise<string> {
  let connections = 0;
  const server = createNetServer((socket) => {
    const connection = ++connections;
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0);
      if (head < 0 || text.length < head + 4 + length) return;
      const whole = text.slice(0, head + 4 + length);
      text = text.slice(head + 4 + length);
      answer({ socket, text: whole, connection });
    });
  });
  return listening(t, server);
}

export async function listening(t: TestContext, server: Server, scheme = "http", host = "127.0.0.1"): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) {
      server.close();
      await once(server, "close");
    }
  });
  return `${scheme}://${host}:${(server.address() as AddressInfo).port}/v1`;
}

/** Resolves once a socket is closed by either side. */
export function closing(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** A base URL at which no server listens. */
export async function closedPort(t: TestContext): Promise<string> {
  return `http://127.0.0.1:${await refusingPort(t)}/v1`;
}

/** Long enough that tests of other behavior never reach them. */
export const HEALTH: UpstreamSettings["health"] = {
  failures: 1_000,
  failurePercent: 100,
  outcomesMin: 1_000,
  windowMs: 30_000,
  coolDownMs: 5_000,
  coolDownMaxMs: 60_000,
};

export function upstream(name: string, baseUrl: string, more: Partial<UpstreamSettings> = {}): UpstreamSettings {
  return {
    name,
    protocol: "chat",
    baseUrl,
    apiKey: new Secret(UPSTREAM_KEY),
    headers: new Map(),
    timeouts: { connectMs: 5_000, firstByteMs: 10_000, wholeMs: 10_000, idleMs: 10_000, totalMs: 20_000 },
    maxConcurrency: 10,
    queue: { max: 0, waitMs: 5_000 },
    health: HEALTH,
    clientGoneGraceMs: 0,
    onClientGone: "abort",
    tls: { ca: undefined, identity: undefined, serverName: undefined },
    ...more,
  };
}

export function timeouts(more: Partial<UpstreamSettings["timeouts"]>): Pick<UpstreamSettings, "timeouts"> {
  return { timeouts: { ...upstream("", "http://127.0.0.1").timeouts, ...more } };
}

export function route(name: string, more: Partial<Route> = {}, protocol: Protocol = "chat"): Route {
  return {
    upstream: name,
    protocol,
    upstreamModel: "model-1",
    weight: 1,
    priority: 0,
    cost: {} as Route["cost"],
    capabilities: defaultCapabilities(protocol),
    rules: [],
    ...more,
  };
}

export interface Rig {
  readonly dispatcher: Dispatcher;
  readonly warnings: DispatchWarning[];
  /** `name: reason` of upstreams that were ejected, and `name: returned`. */
  readonly turns: string[];
  /** How long requests have waited for a slot, by upstream. */
  readonly waits: [string, number][];
}

/** A dispatcher over these upstreams, with the routes in their order (the random draw is constant). */
export function rig(
  t: TestContext,
  upstreams: readonly UpstreamSettings[],
  clock: Clock = systemClock,
  random = () => 0.5,
): Rig {
  const warnings: DispatchWarning[] = [];
  const turns: string[] = [];
  const waits: [string, number][] = [];
  const dispatcher = createDispatcher({
    upstreams: byName(upstreams),
    clock,
    onWarning: (warning) => warnings.push(warning),
    onEjected: (name, { reason }) => turns.push(`${name}: ${reason}`),
    onReturned: (name) => turns.push(`${name}: returned`),
    onWaited: (name, waitedMs) => waits.push([name, waitedMs]),
    random,
  });
  t.after(() => dispatcher.close());
  return { dispatcher, warnings, turns, waits };
}

export function byName(upstreams: readonly UpstreamSettings[]): ReadonlyMap<string, UpstreamSettings> {
  return new Map(upstreams.map((settings) => [settings.name, settings]));
}

/** What the inspector was given; the token of the tests. */
export interface Seen {
  readonly chunks: Buffer[];
  readonly model: string;
}

/** Accepts everything that is not empty. */
export const acceptAll: Inspector<Seen> = {
  chunk: (seen, bytes) => {
    seen.chunks.push(Buffer.from(bytes));
    return "accept";
  },
  end: () => fault("upstream_invalid", "ended without an event"),
  whole: (seen, body) => {
    seen.chunks.push(Buffer.from(body));
    return "accept";
  },
};

export function fault(cause: ReplyFault["cause"], reason: string, code?: string): ReplyFault {
  return { cause, code, reason };
}

export function ask(routes: readonly Route[], more: Partial<DispatchAsk<Seen>> = {}): DispatchAsk<Seen> {
  return {
    protocol: "chat",
    routes,
    stream: true,
    headers: [],
    deadlineMs: systemClock.monotonicMs() + 20_000,
    signal: new AbortController().signal,
    encodeFor: ({ upstreamModel }) => ({
      body: Buffer.from(JSON.stringify({ model: upstreamModel })),
      token: { chunks: [], model: upstreamModel },
    }),
    inspector: acceptAll,
    ...more,
  };
}

export function assertAnswered(result: Answered<Seen> | Unanswered): asserts result is Answered<Seen> {
  if (!result.answered) throw new Error(`not answered: ${JSON.stringify(result)}`);
}

export function refusalIn(result: Answered<Seen> | Unanswered) {
  if (result.answered || result.refusal === undefined) throw new Error(`no refusal: ${JSON.stringify(result)}`);
  return result.refusal;
}

/** Reads a handed-over body to its end; fails if anything follows the end. */
export async function readRest(result: Answered<Seen>): Promise<{ text: string; fault: ReplyFault | undefined }> {
  const chunks: Uint8Array[] = [];
  let over = false;
  const { promise, resolve, reject } = Promise.withResolvers<ReplyFault | undefined>();
  const close = (found: ReplyFault | undefined) => {
    if (over) reject(new Error("two ends"));
    over = true;
    // A second event would arrive in the same burst of I/O.
    setImmediate(() => setImmediate(() => resolve(found)));
  };
  const sink: BodySink = {
    data: (chunk) => {
      if (over) reject(new Error("data after the end"));
      chunks.push(Buffer.from(chunk));
    },
    end: () => close(undefined),
    error: close,
  };
  result.body?.consume(sink);
  const found = await promise;
  return { text: Buffer.concat([...result.token.chunks, ...chunks]).toString("latin1"), fault: found };
}

export const SSE_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
export const JSON_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

/** A complete JSON reply as bytes. */
export function jsonReply(body = '{"ok":true}', status = "200 OK", headers = ""): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
}

export function chunked(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

/** A server that gives every request the same reply. */
export async function replying(t: TestContext, reply: string): Promise<string> {
  return rawServer(t, ({ socket }) => socket.write(Buffer.from(reply, "latin1")));
}

/** A wall clock that never moves and timers that run when the test says so. */
export class FakeClock implements Clock {
  #nowMs = 1_000;
  readonly #timers = new Set<{ atMs: number; task: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that are still pending. */
  get pending(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
    for (const timer of [...this.#timers].sort((left, right) => left.atMs - right.atMs)) {
      if (timer.atMs > this.#nowMs || !this.#timers.delete(timer)) continue;
      timer.task();
    }
  }
}

/** A request that waits at a server until the test answers it. */
export interface Held {
  /** The request's body, parsed. */
  readonly json: unknown;
  answer(status?: number, headers?: Record<string, string>, body?: string): void;
}

/** A server that answers when the test says so; `next` resolves with each request in order of arrival. */
export async function heldServer(t: TestContext): Promise<{ readonly base: string; next(): Promise<Held> }> {
  const come: Held[] = [];
  const waiting: ((held: Held) => void)[] = [];
  const base = await httpServer(t, async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const held: Held = {
      json: JSON.parse(text),
      answer(status = 200, headers = {}, body = '{"ok":true}') {
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
      },
    };
    const next = waiting.shift();
    if (next) next(held);
    else come.push(held);
  });
  return {
    base,
    next() {
      const held = come.shift();
      return held ? Promise.resolve(held) : new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** Resolves once everything that is ready now is done. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
