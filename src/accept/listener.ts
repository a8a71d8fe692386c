/**
 * The public listener: a strict node:http server that turns each request into something that the pipeline can trust.
 * Refusals are values; the pipeline renders them all.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { TransientList } from "../values/collections/transient.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import type { Address } from "../values/settings.ts";
import { UNPROVEN_BYTES_MAX } from "./body.ts";
import { ClientConnection, type HttpExchange } from "./connection.ts";
import {
  type AcceptedRequest,
  type ConsoleVisit,
  type Handlers,
  type ListenerOptions,
  type ParsedRequest,
  parseRequest,
} from "./contract.ts";
import { corsHeaders, preflightHeaders } from "./cors.ts";
import { framing, framingFault } from "./framing.ts";
import { HTTP_LIMITS, type HttpLimits, withinShares } from "./http-limits.ts";
import { type ClientAddressOf, clientAddress, frontMatcher, frontRequestOf, traceparentOf } from "./identity.ts";
import { type KeyReader, keyOf, rememberingReader } from "./key.ts";
import { LateRequests } from "./late-requests.ts";
import { answerRaw, BareResponse, type ClientError, protocolOfPacket, refusalOfHead } from "./raw-answer.ts";
import { Reply, type ReplyContext, standardHeaders } from "./reply.ts";
import { routeOf } from "./routes.ts";
import { Site, type Visit } from "./site/site.ts";
import { removeStaleSocket, restrictSocket } from "./socket-file.ts";

export type { AcceptedRequest, ConsoleVisit, Handlers, ListenerOptions } from "./contract.ts";

/** Idle time before the kernel sends TCP keep-alive probes. */
const TCP_KEEP_ALIVE_MS = 30_000;

/** Creates a listener; it does not listen yet. */
export function createListener(options: ListenerOptions, handlers: Handlers): Listener {
  return new Listener(options, handlers);
}

export class Listener {
  readonly #options: ListenerOptions;
  readonly #handlers: Handlers;
  readonly #limits: HttpLimits;
  readonly #server: Server;
  readonly #clientAddressOf: ClientAddressOf;
  readonly #isFront: (socket: Socket) => boolean;
  readonly #readKey: KeyReader;
  readonly #site: Site;
  readonly #connections = new WeakMap<Socket, ClientConnection>();
  readonly #open = new TransientList<Socket>();
  readonly #upgraded = new WeakSet<Socket>();
  readonly #late: LateRequests;
  #draining = false;
  /** Connections that have ever been accepted. */
  #arrived = 0;
  #closesIdle: NodeJS.Immediate | undefined;
  #closing = false;
  #destroyed = false;

  constructor(options: ListenerOptions, handlers: Handlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#limits = withinShares({ ...HTTP_LIMITS, ...options.limits }, options.connectionGuard?.shares);
    this.#clientAddressOf = clientAddress(options.trustProxy, (peer) => handlers.onUnnamedFront?.(peer));
    this.#isFront = frontMatcher(options.trustProxy);
    this.#readKey = rememberingReader(options.clock);
    this.#site = new Site({
      siteUrl: () => options.siteUrl?.(),
      limits: options.siteLimits,
      shares: options.connectionGuard?.shares,
      consolePath: handlers.onConsole && options.consolePath,
      consoleUrl: handlers.onConsole && options.consoleUrl,
      lingerMs: this.#limits.lingerMs,
      refuse: handlers.onRefusal,
    });
    this.#late = new LateRequests({
      clock: options.clock,
      limits: this.#limits,
      connections: () => this.#readConnections(),
    });
    this.#server = this.#createServer();
  }

  /** Client connections that are open now. */
  get openConnections(): number {
    return this.#open.size;
  }

  /**
   * Starts to listen.
   * @returns the address, with the port that the system chose for port 0.
   * @throws as node:net does: EADDRINUSE, EACCES.
   */
  async listen(): Promise<Address> {
    const { address, shared } = this.#options;
    if (address.kind === "unix" && !shared) await removeStaleSocket(address.path);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject);
    const where = address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port };
    this.#server.listen({ ...where, backlog: this.#limits.backlogMax }, resolve);
    await promise;
    this.#server.off("error", reject);
    // From here on, an error means that a connection could not be accepted (no descriptor left). It is reported, and
    // the listener goes on: it accepts again once a descriptor is free.
    this.#server.on("error", (error) => this.#handlers.onCrash(error));
    if (address.kind === "tcp") return { ...address, port: (this.#server.address() as AddressInfo).port };
    await restrictSocket(address.path);
    return address;
  }

  /** From now on every answer closes its connection; requests are still served (ARCHITECTURE.md promise 12). */
  lameDuck(): void {
    this.#draining = true;
  }

  /** Stops accepting, closes idle connections, and resolves after the last answer has been sent. */
  async close(): Promise<void> {
    this.#draining = true;
    this.#late.watch();
    if (!this.#destroyed) await this.#acceptWaiting();
    this.#closing = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    // Those that were accepted after `destroy`.
    if (this.#destroyed) this.#server.closeAllConnections();
    await promise;
    this.#late.stop();
  }

  /**
   * Resolves when no connection waits to be accepted. Closing the listening socket resets those that wait, and a front
   * does not repeat a POST that it has sent on one. Each turn of the event loop accepts one connection. A flood of new ones
   * has no end, so `destroy` ends the wait.
   */
  async #acceptWaiting(): Promise<void> {
    for (let turns = 0; turns < this.#limits.backlogMax && !this.#destroyed; turns++) {
      const before = this.#arrived;
      // Two, because this turn may be past its accepting.
      await nextTurn();
      await nextTurn();
      if (this.#arrived === before) return;
    }
  }

  /** Once for all answers of this turn: at the deadline of a drain, all streams end in one. */
  #closeIdleSoon(): void {
    this.#closesIdle ??= setImmediate(() => {
      this.#closesIdle = undefined;
      this.#server.closeIdleConnections();
    });
  }

  /**
   * Resolves when the requests that are being served now have their answers, but after `withinMs` at the latest. From now
   * on every answer closes its connection.
   */
  async answered(withinMs: number): Promise<void> {
    this.#draining = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, withinMs);
    await Promise.race([promise, Promise.all(this.#readConnections().map(({ answering }) => answering))]);
    clearTimeout(timer);
  }

  /**
   * Closes every connection at once. For the end of a drain whose deadline has passed, and before `close` for an immediate
   * stop, which then waits for no connection.
   */
  destroy(): void {
    this.#destroyed = true;
    this.#server.closeAllConnections();
    this.#site.destroy();
  }

  #createServer(): Server {
    const limits = this.#limits;
    const server = createServer({
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: Math.max(limits.requestTimeoutMs, limits.headersTimeoutMs),
      connectionsCheckingInterval: limits.checkingIntervalMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      maxHeaderSize: limits.headerBytesMax,
      highWaterMark: limits.readAheadBytesMax,
      joinDuplicateHeaders: false,
      insecureHTTPParser: false,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      // Node's own refusal has neither a body nor a request id; `framingFault` requires the header instead
      // (docs/failure-model.md row 7).
      requireHostHeader: false,
      // Paths of the API and the console are never upgraded: there, `Upgrade` is an ordinary header of a plain request
      // (row 18). The same applies while an earlier request waits for its answer.
      shouldUpgradeCallback: (req) => this.#connectionOf(req.socket).isIdle && this.#site.takesUpgrade(req),
    });
    server.maxHeadersCount = limits.headersMax;
    server.maxRequestsPerSocket = limits.requestsPerSocketMax;
    server.maxConnections = limits.connectionsMax + limits.overflowMax;
    const closeIdle = server.closeIdleConnections.bind(server);
    // To Node a connection is idle as soon as its answer has ended, and it would cut what the client has not taken yet. So
    // idle connections wait until all answers are sent. Node's `close` calls it before it closes the listening socket:
    // a client whose connection has ended would connect again at once, and would be reset.
    server.closeIdleConnections = () => {
      if (!server.listening && !this.#readConnections().some(({ isSending }) => isSending)) closeIdle();
    };
    server.on("connection", (socket: Socket) => this.#onConnection(socket));
    server.on("request", (req, res) => this.#onRequest(req, res, false));
    server.on("checkContinue", (req, res) => this.#onRequest(req, res, true));
    server.on("checkExpectation", (req, res) => this.#onRequest(req, res, false));
    server.on("upgrade", (req, socket, first) => this.#onUpgrade(req, socket as Socket, first));
    server.on("connect", (_req, socket) => this.#connectionOf(socket as Socket).failed(new Error("CONNECT")));
    server.on("clientError", (error: ClientError, socket) => this.#connectionOf(socket as Socket).failed(error));
    return server;
  }

  #onConnection(socket: Socket): void {
    this.#arrived++;
    const place = this.#open.add(socket);
    socket.on("close", () => this.#open.delete(place));
    const { connectionGuard } = this.#options;
    if (this.#open.size <= this.#limits.connectionsMax && !connectionGuard?.refusesConnections()) return;
    connectionGuard?.refused();
    this.#connectionOf(socket).refused();
    this.#answerRaw(socket, refusal("overloaded"), "chat");
  }

  /** Connections that speak HTTP. Upgraded connections have no further requests. */
  #readConnections(): ClientConnection[] {
    const read = this.#open.values().filter((socket) => !this.#upgraded.has(socket));
    return read.map((socket) => this.#connectionOf(socket));
  }

  #connectionOf(socket: Socket): ClientConnection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new ClientConnection(socket, this.#limits, (error) =>
        this.#answerRaw(socket, refusalOfHead(error, this.#limits), protocolOfPacket(error.rawPacket)),
      );
      this.#connections.set(socket, connection);
    }
    return connection;
  }

  #answerRaw(socket: Socket, refused: Refusal, protocol: Protocol): void {
    try {
      const { headers, requestId } = standardHeaders(this.#options.newRequestId(), protocol);
      const rendered = this.#handlers.renderRefusal(refused, protocol, requestId);
      answerRaw(socket, { ...rendered, headers: { ...headers, ...rendered.headers } }, this.#limits.lingerMs);
    } catch (error) {
      this.#handlers.onCrash(error);
      socket.destroy();
    }
  }

  #onRequest(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean): void {
    const connection = this.#connectionOf(req.socket);
    const parsed = parseRequest(req, res, this.#options, awaitsContinue);
    const { body, protocol, receivedAtMs } = parsed;
    const { declaredBytes: declared } = body;
    const discardable = declared !== undefined && declared <= UNPROVEN_BYTES_MAX;
    // Node also sends `connection: close` with the last answer, but keeps the connection open. It then answers
    // pipelined requests with its own 503, which explains nothing.
    const isLast = connection.countsLast();
    const reply = this.#reply(parsed, res, {
      mustClose: () =>
        isLast || this.#draining || connection.isSpent || this.#options.connectionGuard?.closesConnections() === true,
      // A client that waits for `100 Continue` may or may not send its body (RFC 9110 section 10.1.1).
      bodyPending: () => (!parsed.bodyComes() || !discardable) && !req.complete && !connection.isSpent,
      closed: () => {
        connection.answered(exchange);
        // An answer whose headers were sent before the drain could not say `connection: close`. Idle connections are
        // closed only when no new requests are served: before that, a request may be on its way on a connection that
        // looks idle.
        if (this.#closing) this.#closeIdleSoon();
      },
    });
    const exchange: HttpExchange = {
      req,
      body,
      reply,
      receivedAtMs,
      start: () => this.#guard(reply, protocol, () => this.#serve(parsed, reply)),
      refuse: () =>
        this.#guard(reply, protocol, () =>
          this.#handlers.onRefusal(framing("Too many requests wait on this connection."), protocol, reply),
        ),
    };
    connection.add(exchange);
  }

  /** A connection that Node has detached, because `takesUpgrade` returned true. */
  #onUpgrade(req: IncomingMessage, socket: Socket, first: Uint8Array): void {
    this.#upgraded.add(socket);
    const res = new BareResponse(req, socket, this.#limits.lingerMs);
    const parsed = parseRequest(req, res, this.#options, false);
    const reply = this.#reply(parsed, res, { mustClose: () => true, bodyPending: () => false, closed: () => {} });
    this.#guard(reply, parsed.protocol, () => {
      const fault = framingFault(req, parsed.headers, this.#limits);
      if (fault) return this.#handlers.onRefusal(fault, parsed.protocol, reply);
      return this.#site.upgrade(this.#visit(parsed), reply, { socket, first });
    });
  }

  #reply(
    { id, protocol, headers, req }: ParsedRequest,
    res: ServerResponse,
    { mustClose, bodyPending, closed }: Pick<ReplyContext, "mustClose" | "bodyPending" | "closed">,
  ): Reply {
    const { requestId, headers: all } = standardHeaders(id, protocol);
    Object.assign(all, corsHeaders(this.#options.corsOrigins, headers));
    const frontRequest = this.#isFront(req.socket) ? frontRequestOf(headers) : undefined;
    const limits = this.#limits;
    return new Reply(res, { requestId, frontRequest, headers: all, mustClose, bodyPending, closed, limits });
  }

  /** Runs once per request, at its turn: framing, path, then the pipeline. */
  #serve(parsed: ParsedRequest, reply: Reply): void | Promise<void> {
    const { req, headers, protocol, path } = parsed;
    const fault = framingFault(req, headers, this.#limits);
    if (fault) return this.#handlers.onRefusal(fault, protocol, reply);
    const method = req.method ?? "";
    const wantsWebSocket = headers.get("upgrade")?.toLowerCase() === "websocket";
    const preflight = preflightHeaders(this.#options.corsOrigins, method, headers);
    if (preflight) return reply.whole(204, preflight, NO_BYTES);
    const route = routeOf(method, path, wantsWebSocket, this.#options.consolePath);
    if (isRefusal(route)) return this.#handlers.onRefusal(route, protocol, reply);
    if (route.kind === "probe") return reply.whole(200, { "content-type": "application/json" }, NO_BYTES);
    const { onConsole } = this.#handlers;
    if (route.kind === "console" && onConsole) return onConsole(this.#consoleVisit(parsed), reply);
    if (route.kind === "site" || route.kind === "console") return this.#site.serve(this.#visit(parsed), reply);
    return this.#handlers.onRequest(this.#accepted(parsed, route, reply), reply);
  }

  #visit(parsed: ParsedRequest): Visit {
    const { req, headers } = parsed;
    const clientAddress = this.#clientAddressOf(req.socket, headers);
    return { ...parsed, method: req.method ?? "", target: req.url ?? "", clientAddress };
  }

  #consoleVisit({ id, req, headers, body }: ParsedRequest): ConsoleVisit {
    const clientAddress = this.#clientAddressOf(req.socket, headers);
    return {
      id,
      method: req.method ?? "",
      target: req.url ?? "",
      headers: headers.withoutKeys(),
      clientAddress,
      throughFront: this.#isFront(req.socket),
      readBody: () => body.read(async () => refusal("body_too_large")),
    };
  }

  #accepted(parsed: ParsedRequest, route: AcceptedRequest["route"], reply: Reply): AcceptedRequest {
    const { req, headers, body, path, query, protocol, id, receivedAtMs } = parsed;
    const gone = new AbortController();
    reply.onGone(() => gone.abort());
    return {
      id,
      route,
      protocol,
      method: req.method ?? "",
      path,
      query,
      headers: headers.withoutSecrets(),
      key: keyOf(headers, this.#readKey),
      clientAddress: this.#clientAddressOf(req.socket, headers),
      traceparent: traceparentOf(headers),
      receivedAtMs,
      signal: gone.signal,
      readBody: (gate, room) => body.read(gate, room),
      forgetBody: () => body.forget(),
    };
  }

  /** If a handler throws, the process and the other requests go on, and the client's answer ends (row 78). */
  #guard(reply: Reply, protocol: Protocol, task: () => void | Promise<void>): void {
    const crashed = (error: unknown) => this.#crashed(error, reply, protocol);
    try {
      const running = task();
      if (!(running instanceof Promise)) return;
      running.then(() => {
        if (!reply.ended && !reply.gone) crashed(new Error("a request was left without an answer"));
      }, crashed);
    } catch (error) {
      crashed(error);
    }
  }

  #crashed(error: unknown, reply: Reply, protocol: Protocol): void {
    this.#handlers.onCrash(error);
    if (reply.opened) {
      if (!reply.ended) reply.destroy();
      return;
    }
    try {
      const rendered = this.#handlers.renderRefusal(refusal("internal"), protocol, reply.requestId);
      reply.whole(rendered.status, rendered.headers, rendered.body);
    } catch (second) {
      this.#handlers.onCrash(second);
      reply.destroy();
    }
  }
}

const NO_BYTES = new Uint8Array(0);

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
