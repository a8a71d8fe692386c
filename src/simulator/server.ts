/**
 * A simulated model server for chat completions, messages and responses, whole and streamed.
 *
 * It is Tollgate's upstream in every test, and if no real one is configured. It is deterministic: the same request gets
 * the same reply, including ids. It never repeats text of a prompt. `behavior.ts` documents how a request's header, a
 * request's text or a test controls it.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { objectOf } from "../values/json-object.ts";
import { type Protocol, protocolOfPath } from "../values/protocol.ts";
import { type Clock, systemClock } from "../values/time.ts";
import { answerModel, sendError } from "./answer.ts";
import type { Behavior, ReplyDelays } from "./behavior.ts";
import { seedOf } from "./ids.ts";
import { KeptResponses } from "./kept.ts";
import { type ProgramOptions, Programs } from "./programs.ts";
import { type AnswerOutcome, SeenLog, type SeenRequest } from "./seen.ts";
import { LABEL, modelInfo, modelList, vendorHeaders } from "./side.ts";
import { type Link, untilGone } from "./writer.ts";

export type { Behavior, Fault, ReplyDelays } from "./behavior.ts";
export type { SeenRequest } from "./seen.ts";
export { LABEL } from "./side.ts";

export interface SimulatorOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** If set, any other credential gets a 401 in the protocol's form. */
  readonly apiKey?: string;
  /** Default: no delays. */
  readonly pace?: Partial<ReplyDelays>;
  readonly clock?: Clock;
  /** The models that `GET /v1/models` lists; any other model name is served too. */
  readonly models?: readonly string[];
  /** Includes the request's number in the ids, so that equal requests get different ones. Default false. */
  readonly uniqueIds?: boolean;
  /** Refuses with 400 what the vendors refuse: unknown fields, tool results without a call. Default false. */
  readonly strict?: boolean;
  /** Keeps responses without `store: false`, so that clients can refer to them. Default false. */
  readonly stateful?: boolean;
  readonly onRequest?: (seen: SeenRequest) => void;
}

export interface Simulator {
  /** `http://host:port/v1`; the messages SDK takes it without the `/v1`. */
  readonly url: string;
  readonly port: number;
  /** The last 1000 requests, in order of arrival. */
  readonly requests: readonly SeenRequest[];
  /** Requests since the start. */
  readonly count: number;
  /** Sets what the next request gets; with `times` or `when`, this many requests or the matching ones. */
  program(behavior: Behavior, options?: ProgramOptions): void;
  /** Removes all programs. */
  clearPrograms(): void;
  /** Requests that arrive from now on are recorded, but answered only after `release`. */
  hold(): void;
  release(): void;
  /** Resolves once this many requests have arrived since the start. */
  waitFor(n: number): Promise<void>;
  /** Ids of the kept responses, oldest first, as the server itself names them. */
  keptIds(): readonly string[];
  /** Stops listening and cuts every open connection. */
  close(): Promise<void>;
}

/** The largest request body that is read. */
const BODY_BYTES_MAX = 256 * 1024 * 1024;
/** The most bodies whose faults with `times` are counted; the oldest are removed first. */
const COUNTED_BODIES_MAX = 1_000;
/** Longer than the idle timeout of any client's pool, so that the pool closes an idle connection and not the server. */
const KEEP_ALIVE_MS = 120_000;

const NO_PACE: ReplyDelays = { headersDelayMs: 0, firstDelayMs: 0, betweenMs: 0 };
const DEFAULT_MODELS = ["simulated-large", "simulated-small"];

/** Starts a simulator; rejects if the port is not available. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const host = options.host ?? "127.0.0.1";
  const log = new SeenLog();
  const programs = new Programs();
  const gate = new AnswerGate();
  const faultCounts = new Map<string, number>();
  const kept = options.stateful ? new KeptResponses() : undefined;
  const world: World = { kept, options, log, programs, gate, faultCounts, pace: { ...NO_PACE, ...options.pace } };
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
    serve(world, req, res).catch((error: unknown) => giveUp(res, error));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}/v1`,
    port,
    requests: log.requests,
    get count() {
      return log.count;
    },
    program: (behavior, how) => programs.add(behavior, how),
    clearPrograms: () => programs.clear(),
    hold: () => gate.shut(),
    release: () => gate.open(),
    keptIds: () => kept?.ids() ?? [],
    waitFor: (n) => log.waitFor(n),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface World {
  readonly kept: KeptResponses | undefined;
  readonly options: SimulatorOptions;
  readonly log: SeenLog;
  readonly programs: Programs;
  readonly gate: AnswerGate;
  readonly faultCounts: Map<string, number>;
  readonly pace: ReplyDelays;
}

/** Holds back answers while it is shut. */
class AnswerGate {
  #opened: Promise<void> = Promise.resolve();
  #open: () => void = () => {};

  shut(): void {
    this.open();
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open();
  }

  passed(): Promise<void> {
    return this.#opened;
  }
}

/** Reports a directive that cannot be carried out (such as a header with a line break) to the caller. */
function giveUp(res: ServerResponse, error: unknown): void {
  if (res.headersSent) return void res.destroy();
  res.writeHead(500, { "x-simulation": "true", "content-type": "text/plain" }).end(`The simulation failed: ${error}\n`);
}

interface Arrival {
  readonly seen: SeenRequest;
  readonly link: Link;
  /** Path without its query. */
  readonly path: string;
  readonly seed: string;
  readonly isMessages: boolean;
}

async function serve(world: World, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const gone = new AbortController();
  res.once("close", () => gone.abort());
  // Here, a connection reset by the client is an outcome and not an error.
  res.on("error", () => {});
  const body = await readBody(req);
  if (!body) return void res.destroy();
  const arrival = arrive(world, req, res, body, gone.signal);
  world.log.add(arrival.seen);
  world.options.onRequest?.(arrival.seen);
  await Promise.race([world.gate.passed(), untilGone(gone.signal)]);
  if (gone.signal.aborted) return;
  await route(world, req, arrival);
}

function arrive(world: World, req: IncomingMessage, res: ServerResponse, body: Buffer, gone: AbortSignal): Arrival {
  const url = req.url ?? "/";
  const path = url.split("?", 1)[0] as string;
  let wasReset = false;
  const state = { aborted: false };
  const finished = untilGone(gone).then((): AnswerOutcome => {
    if (wasReset) return "broken";
    if (res.writableFinished) return "complete";
    state.aborted = true;
    return "aborted";
  });
  const seen: SeenRequest = {
    method: req.method ?? "GET",
    path: url,
    headers: req.rawHeaders,
    body,
    json: parsed(body),
    get aborted() {
      return state.aborted;
    },
    finished,
  };
  const reset = () => {
    wasReset = true;
    res.socket?.resetAndDestroy();
  };
  const link = { res, clock: world.options.clock ?? systemClock, gone, reset };
  const seed = seedOf(path, body, world.options.uniqueIds ? world.log.count + 1 : 0);
  const isMessages = path.startsWith("/v1/messages") || req.headers["anthropic-version"] !== undefined;
  return { seen, link, path, seed, isMessages };
}

async function route(world: World, req: IncomingMessage, arrival: Arrival): Promise<void> {
  const { seen, link, path, seed, isMessages } = arrival;
  const { res } = link;
  if (path === "/" && (seen.method === "GET" || seen.method === "HEAD")) return sendPage(res);
  const protocol = protocolOfPath(path)?.name;
  const errorShape: Protocol = isMessages ? "messages" : (protocol ?? "chat");
  if (!isAllowed(world.options.apiKey, req)) {
    const words = { message: "Incorrect API key provided to the simulation." };
    return sendError(res, { protocol: errorShape, seed }, 401, words);
  }
  if (protocol && seen.method === "POST") {
    const header = req.headers["x-simulate"];
    return answerModel(link, {
      kept: protocol === "responses" ? world.kept : undefined,
      protocol,
      json: seen.json,
      bodyBytes: seen.body.length,
      header: typeof header === "string" ? header : undefined,
      seed,
      pace: world.pace,
      chosen: world.programs.take(seen, true),
      isStrict: world.options.strict === true,
      countFault: () => countFault(world.faultCounts, `${path} ${seedOf(path, seen.body, 0)}`),
    });
  }
  const stored = storedBody(world, arrival);
  if (stored === "not_cancellable") {
    return sendError(res, { protocol: "responses", seed }, 400, { message: "Cannot cancel a synchronous response." });
  }
  const side = stored ?? sideBody(world, arrival);
  if (side) return sendJson(res, side, vendorHeaders(isMessages, seed));
  const message = `model_not_found: nothing is simulated at ${seen.method} ${path}`;
  return sendError(res, { protocol: errorShape, seed }, 404, { message });
}

/** The answer about a kept response; a program for such requests may replace its `body`. */
function storedBody({ kept, programs }: World, { seen, path }: Arrival): object | "not_cancellable" | undefined {
  const answer = kept?.answer(seen.method, path, new URLSearchParams(seen.path.split("?")[1]));
  if (typeof answer !== "object") return answer;
  const { once, always } = programs.take(seen, false);
  return objectOf((once ?? always)?.body) ?? answer;
}

/** The answer of an endpoint other than the three model paths; undefined if there is none. */
function sideBody(world: World, { seen, path, isMessages }: Arrival): object | undefined {
  const models = world.options.models ?? DEFAULT_MODELS;
  const tokens = Math.ceil(seen.body.length / 4);
  if (seen.method === "POST" && path === "/v1/messages/count_tokens")
    return { input_tokens: countOr(world, seen, tokens) };
  if (seen.method === "POST" && path === "/v1/responses/input_tokens") {
    return { object: "response.input_tokens", input_tokens: countOr(world, seen, tokens) };
  }
  if (seen.method !== "GET") return undefined;
  if (path === "/v1/models") return modelList(models, isMessages);
  const name = path.startsWith("/v1/models/") ? decodeURIComponent(path.slice("/v1/models/".length)) : undefined;
  return name !== undefined && models.includes(name) ? modelInfo(name, isMessages) : undefined;
}

/** A program for such requests may set the count with `usage.input`. */
function countOr(world: World, seen: SeenRequest, tokens: number): number {
  const { once, always } = world.programs.take(seen, false);
  return (once ?? always)?.usage?.input ?? tokens;
}

function isAllowed(apiKey: string | undefined, req: IncomingMessage): boolean {
  if (apiKey === undefined) return true;
  return req.headers.authorization === `Bearer ${apiKey}` || req.headers["x-api-key"] === apiKey;
}

function countFault(counts: Map<string, number>, key: string): number {
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  if (counts.size > COUNTED_BODIES_MAX) counts.delete(counts.keys().next().value as string);
  return count;
}

function sendPage(res: ServerResponse): void {
  res.writeHead(200, { "x-simulation": "true", "content-type": "text/plain; charset=utf-8" }).end(`${LABEL}\n`);
}

function sendJson(res: ServerResponse, body: object, headers: Record<string, string>): void {
  res.writeHead(200, { ...headers, "content-type": "application/json" }).end(JSON.stringify(body));
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

/** The body; undefined if it is too large or the client disconnected before its end. */
async function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of req) {
      bytes += (piece as Buffer).length;
      if (bytes > BODY_BYTES_MAX) return undefined;
      pieces.push(piece as Buffer);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(pieces);
}
