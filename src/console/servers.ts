/** The servers of the admin listener, and what a connection to them may do. */
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, ListenOptions, Socket } from "node:net";
import type { Address } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { AdminRefusal, refusalBody } from "./refusal.ts";

const TIMES: ServerTimes = {
  /** How long a request's head may take to arrive; the first one of a connection, from the connection on. */
  headersTimeout: 10_000,
  /** The same of all of it. */
  requestTimeout: 30_000,
  /** How often the two are looked at. */
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 10_000,
  /**
   * A connection on which nothing moves for so long is closed: whoever does not read its answer would keep its place. Commands
   * give up before that.
   */
  timeout: 90_000,
};
/** Connections to a listener at once; further ones are closed. */
const CONNECTIONS_MAX = 256;
/** Requests of a connection that wait for the answer to an earlier one; with one more it ends. */
const WAITING_MAX = 16;
/** How long answers that are under way may take while the listener closes, and requests of which a part has come. */
const CLOSE_GRACE_MS = 5_000;

/** By their names at `node:http`, milliseconds. */
type ServerTimes = Readonly<
  Record<"headersTimeout" | "requestTimeout" | "connectionsCheckingInterval" | "keepAliveTimeout" | "timeout", number>
>;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface WaitingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Has it answered. */
  readonly begin: () => void;
}

/** What listens: for a name of several addresses there is one for each. */
export class Servers {
  readonly #answer: Handler;
  readonly #bound: Server[] = [];
  readonly #times: ServerTimes;
  /** Requests of a connection that have not been answered to their end; the first is being answered. */
  readonly #unanswered = new WeakMap<Socket, WaitingRequest[]>();
  /** Connections that end with their last answer: behind their requests came what is none. */
  readonly #broken = new WeakSet<Socket>();
  /** Each open connection, and how much had come of it when it had last nothing to be answered. */
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
    // Some programs take this name for the one address, some for the other.
    const named = host === "localhost" ? await lookup(host, { all: true }) : [];
    const others = named.filter((other) => other.address !== first.address);
    await Promise.allSettled(others.map((other) => this.#bind({ host: other.address, port: first.port })));
    return { ...address, port: first.port };
  }

  async close(clock: Clock): Promise<void> {
    this.#isClosing = true;
    const closed = this.#bound.map((server) => new Promise((resolve) => server.close(resolve)));
    // Node ends its check of requests that do not come when the server closes: half a request would hold it for good.
    const cancel = clock.after(CLOSE_GRACE_MS, () => {
      for (const server of this.#bound) server.closeAllConnections();
    });
    await Promise.all(closed);
    cancel();
  }

  /**
   * Answers the requests of a connection one after the other, each when the one before it has left: who sends thousands and reads
   * nothing has one page made, and not all of them.
   */
  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const unanswered = this.#unanswered.get(socket) ?? [];
    this.#unanswered.set(socket, unanswered);
    const begin = () => {
      response.once("close", () => {
        unanswered.shift();
        if (this.#connections.has(socket)) this.#connections.set(socket, socket.bytesRead);
        // It ends with this answer, or has ended: what waits could not be answered, and must not be done.
        if (!socket.writable) return;
        // Node would keep the connection of an answer that was under way as the server began to close.
        if (unanswered.length === 0 && (this.#isClosing || this.#broken.has(socket))) socket.destroySoon();
        else unanswered[0]?.begin();
      });
      this.#answer(request, response);
    };
    const isFirst = unanswered.push({ request, response, begin }) === 1;
    if (isFirst) begin();
    else if (unanswered.length > 1 + WAITING_MAX) socket.destroy();
  }

  /** The parser has failed. What came whole before that is answered first, and no other answer is mixed with it. */
  #failed(error: Error & { code?: string }, socket: Socket): void {
    const unanswered = this.#unanswered.get(socket) ?? [];
    const last = unanswered.at(-1);
    const isBehind = last?.request.complete === true && error.code !== "ECONNRESET";
    const isInBody = last !== undefined && unanswered.length === 1 && !last.response.headersSent;
    if (isBehind) this.#broken.add(socket);
    else if (last === undefined || isInBody) refuseMalformedHttp(error, socket);
    else socket.destroy();
  }

  /** Not those of which half a request has come, and none whose answer has not left: to Node, one that is written is done. */
  #endIdle(): void {
    for (const [socket, bytesRead] of this.#connections) {
      if (!this.#unanswered.get(socket)?.length && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  async #bind(where: ListenOptions): Promise<AddressInfo | string | null> {
    const take: Handler = (request, response) => this.#take(request, response);
    // What has no host is refused by `assertFraming`, and so is what expects something else.
    const server = createServer({ ...this.#times, requireHostHeader: false }, take);
    server.on("checkExpectation", take);
    server.maxConnections = CONNECTIONS_MAX;
    server.timeout = this.#times.timeout;
    server.on("clientError", (error, socket) => this.#failed(error, socket as Socket));
    server.on("connection", (socket) => {
      this.#connections.set(socket, 0);
      socket.once("close", () => this.#connections.delete(socket));
    });
    // `close` calls it.
    server.closeIdleConnections = () => this.#endIdle();
    server.listen(where);
    await once(server, "listening");
    this.#bound.push(server);
    return server.address();
  }
}

/**
 * What Node lets pass and another server on the way may read differently (RFC 9112 sections 3.2 and 3.2.2). A target with an
 * authority is made one without: the authority counts, whatever the host header says.
 * @throws AdminRefusal
 */
export function assertFraming(request: IncomingMessage): void {
  const { rawHeaders, headers, httpVersion, url = "" } = request;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host").length;
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1")) throw malformed("It needs one host header.");
  const expected = headers.expect?.toLowerCase() ?? "100-continue";
  if (expected !== "100-continue") throw malformed("Nothing but 100-continue can be expected.", 417);
  if (url.startsWith("/") || url === "*") return;
  const target = URL.canParse(url) ? new URL(url) : undefined;
  if (target?.protocol !== "http:" && target?.protocol !== "https:") throw malformed("Its target is none of HTTP.");
  headers.host = target.host;
  request.url = target.pathname + target.search;
}

function malformed(remedy: string, status = 400): AdminRefusal {
  return new AdminRefusal(status, "framing", "The HTTP request is malformed.", remedy, { connection: "close" });
}

type Words = readonly [status: number, code: string, message: string, remedy: string];

const MALFORMED: Words = [400, "framing", "The HTTP request is malformed.", "Send HTTP/1.1."];
/** By Node's word for what is wrong. */
const BROKEN: Readonly<Record<string, Words>> = {
  HPE_HEADER_OVERFLOW: [431, "headers_too_large", "The headers are too large.", "Send fewer or shorter headers."],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "too_large", "The extensions of a chunk are too large.", "Send none."],
  ERR_HTTP_REQUEST_TIMEOUT: [
    408,
    "request_timeout",
    "The request has not come in time.",
    "Send it again, all of it at once.",
  ],
};

/** Answers bytes that are not HTTP, where no answer has begun. */
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
