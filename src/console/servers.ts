/** The HTTP servers of the admin listener, and the limits of a connection to them. */
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, ListenOptions, Socket } from "node:net";
import type { Address } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { AdminRefusal, refusalBody } from "./refusal.ts";

const TIMES: ServerTimes = {
  /**
   * Time for the head of a request. For the first request of a connection it includes the time since the connection was
   * opened.
   */
  headersTimeout: 10_000,
  /** Time for the complete request. */
  requestTimeout: 30_000,
  /** How often Node checks the two timeouts above. */
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 10_000,
  /**
   * A connection without any traffic for this long is closed, because a client that does not read its answer would
   * occupy a connection. Commands of the CLI give up earlier.
   */
  timeout: 90_000,
};
/** Maximum number of connections to a listener; further ones are closed. */
const CONNECTIONS_MAX = 256;
/** Maximum number of pipelined requests that wait for an earlier answer; one more closes the connection. */
const WAITING_MAX = 16;
/** While the listener closes: time for running answers, and for requests that have partly arrived. */
const CLOSE_GRACE_MS = 5_000;

/** By their names in `node:http`, in milliseconds. */
type ServerTimes = Readonly<
  Record<"headersTimeout" | "requestTimeout" | "connectionsCheckingInterval" | "keepAliveTimeout" | "timeout", number>
>;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface WaitingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Passes the request to the handler. */
  readonly begin: () => void;
}

/** The listening servers. A name with several addresses has one for each. */
export class Servers {
  readonly #answer: Handler;
  readonly #bound: Server[] = [];
  readonly #times: ServerTimes;
  /** Requests of a connection whose answers are not complete; the first one is being answered. */
  readonly #unanswered = new WeakMap<Socket, WaitingRequest[]>();
  /** Connections that close after their last answer, because invalid bytes followed their requests. */
  readonly #broken = new WeakSet<Socket>();
  /** Each open connection, with the number of bytes that it had received when it last had no request to answer. */
  readonly #connections = new Map<Socket, number>();
  #isClosing = false;

  constructor(answer: Handler, times = TIMES) {
    this.#answer = answer;
    this.#times = times;
  }

  async listen(address: Address): Promise<Address> {
    if (address.kind === "unix") {
      await this.#bind({ path: address.path });
      return address;
    }
    const { host } = address;
    const first = (await this.#bind({ host, port: address.port })) as AddressInfo;
    // Some programs resolve this name to the IPv4 address, some to the IPv6 address.
    const named = host === "localhost" ? await lookup(host, { all: true }) : [];
    const others = named.filter((other) => other.address !== first.address);
    await Promise.allSettled(others.map((other) => this.#bind({ host: other.address, port: first.port })));
    return { ...address, port: first.port };
  }

  async close(clock: Clock): Promise<void> {
    this.#isClosing = true;
    const closed = this.#bound.map((server) => new Promise((resolve) => server.close(resolve)));
    // Node stops its check of request timeouts when the server closes, so half a request would keep it open forever.
    const cancel = clock.after(CLOSE_GRACE_MS, () => {
      for (const server of this.#bound) server.closeAllConnections();
    });
    await Promise.all(closed);
    cancel();
  }

  /**
   * Answers the requests of a connection in order. Each starts when the answer before it has been sent, so that a
   * client that sends thousands of requests and reads nothing causes only one page to be generated.
   */
  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const unanswered = this.#unanswered.get(socket) ?? [];
    this.#unanswered.set(socket, unanswered);
    const begin = () => {
      response.once("close", () => {
        unanswered.shift();
        if (this.#connections.has(socket)) this.#connections.set(socket, socket.bytesRead);
        // The connection ends with this answer, or has ended. Waiting requests could not be answered, so they must not
        // be executed.
        if (!socket.writable) return;
        // Node would keep a connection open if an answer was running when the server started to close.
        if (unanswered.length === 0 && (this.#isClosing || this.#broken.has(socket))) socket.destroySoon();
        else unanswered[0]?.begin();
      });
      this.#answer(request, response);
    };
    const isFirst = unanswered.push({ request, response, begin }) === 1;
    if (isFirst) begin();
    else if (unanswered.length > 1 + WAITING_MAX) socket.destroy();
  }

  /**
   * Called when the parser fails. Complete requests before the failure are answered first; their answers are never
   * mixed with another one.
   */
  #failed(error: Error & { code?: string }, socket: Socket): void {
    const unanswered = this.#unanswered.get(socket) ?? [];
    const last = unanswered.at(-1);
    const isBehind = last?.request.complete === true && error.code !== "ECONNRESET";
    const isInBody = last !== undefined && unanswered.length === 1 && !last.response.headersSent;
    if (isBehind) this.#broken.add(socket);
    else if (last === undefined || isInBody) refuseMalformedHttp(error, socket);
    else socket.destroy();
  }

  /**
   * Closes idle connections. A connection on which part of a request has arrived, or whose answer has not been sent, is
   * not idle; Node treats an answer as sent once it is written.
   */
  #endIdle(): void {
    for (const [socket, bytesRead] of this.#connections) {
      if (!this.#unanswered.get(socket)?.length && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  async #bind(where: ListenOptions): Promise<AddressInfo | string | null> {
    const take: Handler = (request, response) => this.#take(request, response);
    // `assertFraming` refuses requests without a host header, and those with an unsupported `expect` header.
    const server = createServer({ ...this.#times, requireHostHeader: false }, take);
    server.on("checkExpectation", take);
    server.maxConnections = CONNECTIONS_MAX;
    server.timeout = this.#times.timeout;
    server.on("clientError", (error, socket) => this.#failed(error, socket as Socket));
    server.on("connection", (socket) => {
      this.#connections.set(socket, 0);
      socket.once("close", () => this.#connections.delete(socket));
    });
    // Called by `close`.
    server.closeIdleConnections = () => this.#endIdle();
    server.listen(where);
    await once(server, "listening");
    this.#bound.push(server);
    return server.address();
  }
}

/**
 * Refuses requests that Node accepts but another server on the way may read differently (RFC 9112 sections 3.2 and
 * 3.2.2). An absolute target is reduced to its path and query; its authority replaces the host header.
 * @throws AdminRefusal
 */
export function assertFraming(request: IncomingMessage): void {
  const { rawHeaders, headers, httpVersion, url = "" } = request;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host").length;
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1")) throw malformed("Send exactly one Host header.");
  const expected = headers.expect?.toLowerCase() ?? "100-continue";
  if (expected !== "100-continue") throw malformed("Leave out the Expect header, or send 100-continue.", 417);
  if (url.startsWith("/") || url === "*") return;
  const target = URL.canParse(url) ? new URL(url) : undefined;
  if (target?.protocol !== "http:" && target?.protocol !== "https:") throw malformed("Its target is not an HTTP URL.");
  headers.host = target.host;
  request.url = target.pathname + target.search;
}

function malformed(remedy: string, status = 400): AdminRefusal {
  return new AdminRefusal(status, "framing", "The HTTP request is malformed.", remedy, { connection: "close" });
}

type Words = readonly [status: number, code: string, message: string, remedy: string];

const MALFORMED: Words = [400, "framing", "The HTTP request is malformed.", "Send HTTP/1.1."];
/** By Node's error code. */
const BROKEN: Readonly<Record<string, Words>> = {
  HPE_HEADER_OVERFLOW: [431, "headers_too_large", "The headers are too large.", "Send fewer or shorter headers."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [
    413,
    "too_large",
    "The extensions of a chunk are too large.",
    "Send no chunk extensions.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    408,
    "request_timeout",
    "The complete request did not arrive in time.",
    "Send the complete request again without pauses.",
  ],
};

/** Answers invalid HTTP if no answer has started. */
function refuseMalformedHttp(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = new AdminRefusal(...(BROKEN[error.code ?? ""] ?? MALFORMED));
  const body = JSON.stringify(refusalBody(refusal));
  const head = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
