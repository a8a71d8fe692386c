/**
 * One upstream in this process: its connections, its slots, its health. The only file that uses undici.
 *
 * SECURITY: There is one pool per upstream, so that neither a connection nor a TLS session is ever shared between two
 * identities (docs/failure-model.md row 70). `pipelining: 1` means one request at a time on a connection. undici
 * destroys a connection on which anything arrives that no request asked for, so a reused connection is clean (invariant
 * 19, rows C9 and 71). HTTP/2 is off, because there, one reset of a peer affects many requests.
 *
 * For these reasons `blocking` is always false. With true, undici would check each head of an answer to decide whether
 * other requests may follow on its connection (0.25 % of the time of a whole reply).
 */
import { lookup } from "node:dns";
import type { Readable } from "node:stream";
import { type ConnectionOptions, createSecureContext, TLSSocket } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import type { buildConnector, Dispatcher as Undici } from "undici";
// Not by the package's own name, which also loads fetch, caches, mocks and WebSockets: 4 MB of heap, 11 MB of the
// process.
import connectorWith from "undici/lib/core/connect.js";
import Pool from "undici/lib/dispatcher/pool.js";
import { sharedLookup } from "../../values/program/shared-lookup.ts";
import { PROTOCOLS } from "../../values/protocol.ts";
import type { HeaderEdits } from "../../values/rules.ts";
import type { TlsSettings, UpstreamSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { type Ejection, Health } from "./health.ts";
import { ReadingTurns } from "./reading-turns.ts";
import { compileRequestHead } from "./request-head.ts";
import { Slots } from "./slots.ts";

export type UpstreamHandler = Undici.DispatchHandler;
export type UpstreamController = Undici.DispatchController;
type ConnectOptions = Pick<ConnectionOptions, "secureContext" | "servername">;

/** How long an unused connection is kept. Short, because a server that closes first would cut a new request. */
const KEEP_ALIVE_MS = 4_000;

/** Cap on a server's own keep-alive hint. */
const KEEP_ALIVE_HINT_MS_MAX = 60_000;

/**
 * After this time requests get new connections, and the old ones end with their requests. Under steady load they would
 * otherwise be kept forever: the server's name may have other addresses meanwhile, and its certificate may have ended.
 * (undici's `clientTtl` would look at the clock for each connection of the pool with each request.)
 */
const CONNECTION_AGE_MS_MAX = 600_000;

/** Names and values of a reply's head together; undici's error for more is UND_ERR_HEADERS_OVERFLOW. */
const REPLY_HEAD_BYTES_MAX = 16_384;

/** A longer body is written in pieces, each after the kernel has accepted the one before. */
const BODY_PIECE_BYTES = 65_536;
/**
 * undici keeps a body that it gets in one piece until the answer has ended, and a stream may last for minutes. A longer
 * body of a stream is given in pieces, which undici releases once they are written. This takes 5 us more.
 */
const KEPT_BYTES_MAX = 16_384;
const NO_BYTES = new Uint8Array(0);

/** Share of the slots that clients' questions about what the upstream keeps may have. */
const ASKED_SHARE = 0.25;

export interface UpstreamParts {
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly random: () => number;
  readonly onEjected: (upstream: string, ejection: Ejection) => void;
  readonly onReturned: (upstream: string) => void;
}

export class Upstream {
  readonly settings: UpstreamSettings;
  readonly slots: Slots;
  readonly health: Health;
  /** Of answers about what it keeps: clients that ask for many of theirs do not keep the gateway from its own. */
  readonly readingTurns: Readonly<Record<"by_gateway" | "by_client", ReadingTurns>>;
  /** Of clients' questions about it: these cost nothing, and leave slots for requests that are paid for. */
  readonly askingTurns: ReadingTurns;
  readonly firstBytes = new FirstByteTimes();
  readonly #clock: Clock;
  readonly #poolOptions: Pool.Options;
  #pool: Pool;
  #poolUntilMs: number;
  /** Former pools whose requests still run, until they are closed. */
  readonly #retired = new Set<Promise<void>>();
  readonly #origin: string;
  readonly #path: string;
  readonly #query: string;
  readonly #head: ReturnType<typeof compileRequestHead>;
  #closing: Promise<void> | undefined;

  /**
   * @param before an upstream of the same server that this one replaces: they share slots and turns.
   * @throws if the PEM texts or the base URL are invalid: such a configuration must not be accepted.
   */
  constructor(settings: UpstreamSettings, parts: UpstreamParts, before?: Upstream) {
    const base = new URL(settings.baseUrl);
    this.settings = settings;
    this.slots = before?.slots ?? new Slots(settings.maxConcurrency, settings.queue, parts.clock);
    this.readingTurns = before?.readingTurns ?? { by_gateway: new ReadingTurns(), by_client: new ReadingTurns() };
    this.askingTurns = before?.askingTurns ?? new ReadingTurns(askedAtOnce(settings));
    this.health = new Health(settings.health, {
      clock: parts.clock,
      random: parts.random,
      onEjected: (ejection) => {
        parts.onEjected(settings.name, ejection);
        // Requests that wait for a slot here may find a better upstream.
        this.slots.dissolveQueue();
      },
      onReturned: () => parts.onReturned(settings.name),
    });
    this.#origin = base.origin;
    this.#path = base.pathname.replace(/\/+$/, "") + PROTOCOLS[settings.protocol].upstreamPath;
    this.#query = base.search;
    this.#head = compileRequestHead(settings);
    this.#clock = parts.clock;
    this.#poolOptions = {
      // One for each slot. A server that keeps answers may be asked about that of each running request, too.
      connections: settings.maxConcurrency * (settings.protocol === "responses" ? 2 : 1),
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_HINT_MS_MAX,
      maxHeaderSize: REPLY_HEAD_BYTES_MAX,
      connect: connector({
        allowH2: false,
        // Cleans up the socket. The effective timer is in `Call`: it starts with the request and is exact.
        timeout: settings.timeouts.connectMs,
        lookup: sharedLookup(parts.clock, lookup),
        // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no effect here.
        rejectUnauthorized: true,
        ...tlsOptions(settings.tls),
      }),
    };
    this.#pool = new Pool(this.#origin, this.#poolOptions);
    this.#poolUntilMs = this.#clock.monotonicMs() + CONNECTION_AGE_MS_MAX;
  }

  /** Applies its limits to what it shares with the upstreams that it replaces. What waits there chooses again. */
  applyLimits(): void {
    const { maxConcurrency, queue } = this.settings;
    this.slots.change(maxConcurrency, queue);
    this.askingTurns.change(askedAtOnce(this.settings));
  }

  /** Makes all that wait for a slot or a turn choose again. */
  dissolveQueues(): void {
    this.slots.dissolveQueue();
    this.askingTurns.dissolve();
  }

  /** Method and address without a query, for messages to the operator. */
  get asked(): string {
    return `POST ${this.#origin}${this.#path}`;
  }

  get speaksTls(): boolean {
    return this.#origin.startsWith("https:");
  }

  /**
   * Sends one request. Every outcome, including undici's own refusals, goes only to the handler.
   * @param nowMs on the clock's `monotonicMs`.
   */
  send(
    request: {
      stream: boolean;
      method: "POST" | "GET" | "DELETE";
      pathSuffix: string;
      query: string | undefined;
      body: Uint8Array;
      headers: readonly (readonly [string, string])[];
      headerEdits: readonly HeaderEdits[];
    },
    handler: UpstreamHandler,
    nowMs: number,
  ): void {
    if (nowMs >= this.#poolUntilMs) this.#renewConnections(nowMs);
    const { body, method, query } = request;
    const head = this.#head(request.stream, request.headers, request.headerEdits);
    const path = this.#pathTo(request.pathSuffix, query);
    if (body.length === 0) {
      this.#sendBare(method, path, head, handler);
      return;
    }
    const inPieces = body.length > (request.stream ? KEPT_BYTES_MAX : BODY_PIECE_BYTES);
    this.#pool.dispatch(
      {
        method,
        path,
        headers: inPieces ? [...head, "content-length", String(body.length)] : head,
        body: inPieces ? piecesOf(body) : body,
        blocking: false,
        idempotent: false,
      },
      handler,
    );
  }

  #pathTo(suffix: string, query: string | undefined): string {
    const added = query === undefined || query === "" ? "" : `${this.#query === "" ? "?" : "&"}${query}`;
    return this.#path + suffix + this.#query + added;
  }

  /**
   * Without a body, no header may describe one: some servers would wait for a body, or refuse because it is missing.
   */
  #sendBare(method: "POST" | "GET" | "DELETE", path: string, head: string[], handler: UpstreamHandler): void {
    const at = head.indexOf("content-type");
    const headers = at < 0 ? head : [...head.slice(0, at), ...head.slice(at + 2)];
    this.#pool.dispatch({ method, path, headers, blocking: false, idempotent: false }, handler);
  }

  #renewConnections(nowMs: number): void {
    if (this.#closing) return;
    const closed = this.#pool.close().then(() => void this.#retired.delete(closed));
    this.#retired.add(closed);
    this.#pool = new Pool(this.#origin, this.#poolOptions);
    this.#poolUntilMs = nowMs + CONNECTION_AGE_MS_MAX;
  }

  /** Accepts no new request, lets the running ones finish, then closes every connection. Each call waits for that. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#pool.close(), ...this.#retired]).then(() => undefined);
    return this.#closing;
  }
}

/** How many questions of clients may be asked at once. */
function askedAtOnce({ maxConcurrency }: UpstreamSettings): number {
  return Math.max(1, Math.floor(ASKED_SHARE * maxConcurrency));
}

/**
 * A body in one piece counts as written as soon as it is queued. If the answer came before the server had read it, the
 * rest would remain in front of the next request. With pieces, undici notices this, and destroys the connection (row
 * C9).
 */
function piecesOf(body: Uint8Array): Readable {
  // The iterable is kept until the answer has ended, so it must not hold what has been taken.
  let rest = body;
  function* pieces(): Generator<Uint8Array> {
    while (rest.length > 0) {
      const piece = rest.subarray(0, BODY_PIECE_BYTES);
      rest = rest.length > BODY_PIECE_BYTES ? rest.subarray(BODY_PIECE_BYTES) : NO_BYTES;
      yield piece;
    }
  }
  // undici accepts iterables (https://undici.nodejs.org/#/docs/api/Dispatcher), but its types do not say so.
  return pieces() as unknown as Readable;
}

/**
 * Opens connections as undici does. With TLS 1.3 a server that refuses our certificate says so after the handshake, by
 * an alert, and then ends the connection. undici would report only the end. A connection that is destroyed at the alert
 * fails for the reason in it.
 */
function connector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = connectorWith(options);
  return (to, done) =>
    connect(to, (...[error, socket]) => {
      if (error) return done(error, null);
      if (socket instanceof TLSSocket) socket.once("error", (alert) => socket.destroy(alert));
      done(null, socket);
    });
}

/** One context for all connections of the pool: PEM texts are parsed once, and errors appear at once. */
function tlsOptions({ ca, identity, serverName }: TlsSettings): ConnectOptions {
  if (ca === undefined && identity === undefined) return serverName === undefined ? {} : { servername: serverName };
  const secureContext = createSecureContext({
    ...(ca === undefined ? {} : { ca }),
    ...(identity === undefined ? {} : { cert: identity.cert, key: identity.key.reveal() }),
  });
  return { secureContext, ...(serverName === undefined ? {} : { servername: serverName }) };
}

/**
 * Whether two settings are for the same model server under the same name: then they share slots and turns, whatever
 * else differs.
 */
export function sameServer(left: UpstreamSettings, right: UpstreamSettings): boolean {
  return left.name === right.name && new URL(left.baseUrl).origin === new URL(right.baseUrl).origin;
}

/** Whether two settings would make the same upstream, so that a reload can keep its connections. */
export function sameUpstream(left: UpstreamSettings, right: UpstreamSettings): boolean {
  const plain = (settings: UpstreamSettings) => ({
    ...settings,
    apiKey: settings.apiKey?.reveal(),
    tls: { ...settings.tls, identity: { ...settings.tls.identity, key: settings.tls.identity?.key.reveal() } },
    headers: new Map([...settings.headers].map(([name, value]) => [name, value.reveal()])),
  });
  return isDeepStrictEqual(plain(left), plain(right));
}

/* Recent times to the first byte by model: a moving average, to compare slow and fast upstreams. */

/** Weight of the newest time. */
const NEWEST_SHARE = 0.2;

class FirstByteTimes {
  /** By the model's name at the upstream, so bounded by the configuration. */
  readonly #meanMs = new Map<string, number>();

  add(model: string, ms: number): void {
    const before = this.#meanMs.get(model);
    this.#meanMs.set(model, before === undefined ? ms : before + NEWEST_SHARE * (ms - before));
  }

  /** In milliseconds; undefined if none has been measured. */
  meanMs(model: string): number | undefined {
    return this.#meanMs.get(model);
  }
}
