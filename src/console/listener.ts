/**
 * The admin listener. What monitoring asks it answers itself; all else is the application's (`admin-app.ts`), which is read and
 * made for the first who asks for more: it would be a fifth of a start, and memory that many gateways never need.
 */
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, ListenOptions, Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { newRequestId, printRequestId } from "../values/request-id.ts";
import type { Secret } from "../values/secret.ts";
import type { Address } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { type AccessReason, makeAccess } from "./access.ts";
import type { AdminAppOptions } from "./admin-app.ts";
import type { App } from "./app.ts";
import { GuessBudget, TOKEN_GUESS_LIMITS } from "./guess-budget.ts";
import { PROBES, type ProbeAnswer } from "./probes.ts";
import { AdminRefusal, defectLine, INTERNAL, refusalBody } from "./refusal.ts";

/** How long a request may take to arrive whole. */
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 10_000;
/** Connections to a listener at once; further ones are closed. */
const CONNECTIONS_MAX = 256;
/** How long an application that could not be made is not tried again. */
export const AGAIN_MS = 1_000;
/** Of refusals that say who may ask. */
const ACCESS_STATUS: ReadonlySet<number> = new Set([401, 403, 429]);
/** How long answers that are under way may take while the listener closes, and requests of which a part has come. */
const CLOSE_GRACE_MS = 5_000;

export interface AdminListenerOptions extends Omit<AdminAppOptions, "access" | "isUnix"> {
  /** Undefined: only programs on this machine may administer. */
  readonly adminToken: Secret | undefined;
  /** Called with an address, or an IPv6 network, that has sent too many wrong tokens. */
  readonly onTokenGuesses?: (from: string) => void;
}

export interface AdminListener {
  /** Begins to listen, once. @returns the address, with the port that the system chose for port 0. Rejects as node:net does. */
  listen(address: Address): Promise<Address>;
  /** Answers that are under way may end, for a time. */
  close(): Promise<void>;
}

/** Builds the listener; nothing is bound here. */
export function adminListener(options: AdminListenerOptions): AdminListener {
  const { clock } = options;
  const budget = new GuessBudget(clock, TOKEN_GUESS_LIMITS);
  const access = makeAccess(options.adminToken, { budget, onTooMany: (from) => options.onTokenGuesses?.(from) });
  let isUnix = false;
  let isClosing = false;
  let made: Promise<App> | undefined;

  /**
   * One that could not be made, for want of descriptors perhaps, is tried again for who asks a second later: who asks without a token
   * must not fill the log.
   */
  function application(): Promise<App> {
    made ??= makeApp({ ...options, access, isUnix }).catch((error: unknown) => {
      options.log(defectLine(error, undefined, undefined));
      clock.after(AGAIN_MS, () => {
        made = undefined;
      });
      throw FAILED;
    });
    return made;
  }

  async function probe(path: keyof typeof PROBES, { socket, headers }: IncomingMessage): Promise<ProbeAnswer> {
    const { access: asked, answer } = PROBES[path];
    if (asked === "metrics") access.metrics({ address: socket.remoteAddress, unix: isUnix, headers });
    return answer(options, headers.accept);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (!isProbe(request)) {
        // An application that is made now would be closed by nobody.
        if (isClosing) throw closing();
        (await application()).routing(request, response);
        return;
      }
      const { status, contentType, body } = await probe(request.url as keyof typeof PROBES, request);
      send(response, status, { "content-type": contentType }, body);
    } catch (error) {
      const isRefused = error instanceof AdminRefusal;
      if (!isRefused) options.log(defectLine(error, request.method, isProbe(request) ? request.url : undefined));
      else if (ACCESS_STATUS.has(error.status)) options.onAccessRefused?.(error.code as AccessReason);
      if (response.headersSent) response.destroy();
      else refuse(response, isRefused ? error : FAILED);
    }
  }

  /** @param headers beside those that every answer has. */
  function send(response: ServerResponse, status: number, headers: Record<string, string>, body: string): void {
    const id = printRequestId(newRequestId(clock.wallMs(), options.random));
    const length = Buffer.byteLength(body);
    response.writeHead(status, { ...HEADERS, "x-request-id": id, ...headers, "content-length": length });
    response.end(body);
  }

  function refuse(response: ServerResponse, refusal: AdminRefusal): void {
    const headers = { ...refusal.headers, "content-type": "application/json; charset=utf-8" };
    send(response, refusal.status, headers, JSON.stringify(refusalBody(refusal)));
  }

  const servers = new Servers((request, response) => void answer(request, response));
  return {
    listen(address) {
      isUnix = address.kind === "unix";
      return servers.listen(address);
    },
    async close() {
      isClosing = true;
      const closed = servers.close(clock);
      // One that could not be made has been logged.
      await made?.then(
        (app) => app.close(),
        () => {},
      );
      await closed;
    },
  };
}

/** What listens: for a name of several addresses there is one for each. */
class Servers {
  readonly #answer: (request: IncomingMessage, response: ServerResponse) => void;
  readonly #bound: Server[] = [];
  /** How many requests of a connection have not been answered to their end. */
  readonly #underWay = new WeakMap<Socket, number>();
  #isClosing = false;

  constructor(answer: (request: IncomingMessage, response: ServerResponse) => void) {
    this.#answer = answer;
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

  /** Node would keep the connection of an answer that was under way as the server began to close. */
  #follow(socket: Socket, response: ServerResponse): void {
    this.#underWay.set(socket, (this.#underWay.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = (this.#underWay.get(socket) ?? 0) - 1;
      this.#underWay.set(socket, left);
      if (this.#isClosing && left === 0) socket.destroySoon();
    });
  }

  async #bind(where: ListenOptions): Promise<AddressInfo | string | null> {
    const timeouts = { requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS };
    const server = createServer(timeouts, (request, response) => {
      this.#follow(request.socket, response);
      this.#answer(request, response);
    });
    server.maxConnections = CONNECTIONS_MAX;
    server.on("clientError", refuseMalformedHttp);
    server.listen(where);
    await once(server, "listening");
    this.#bound.push(server);
    return server.address();
  }
}

async function makeApp(options: AdminAppOptions): Promise<App> {
  // Read in several turns of the loop, so that requests of clients do not wait for all of it.
  await import("./app.ts");
  await setImmediate();
  const { adminApp } = await import("./admin-app.ts");
  await setImmediate();
  const app = adminApp(options);
  await app.ready();
  return app;
}

const HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** A body that nobody will read may be on its way. */
const FAILED = new AdminRefusal(INTERNAL.status, INTERNAL.code, INTERNAL.message, INTERNAL.remedy, {
  connection: "close",
});

function closing(): AdminRefusal {
  const headers = { connection: "close", "retry-after": "1" };
  return new AdminRefusal(503, "closing", "The gateway closes.", "Ask again when it runs.", headers);
}

/** Any other form of such a request, as HEAD or one with a body, is left to the application. */
function isProbe({ method, url = "", headers }: IncomingMessage): boolean {
  if (method !== "GET" || !Object.hasOwn(PROBES, url)) return false;
  return headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
}

/** Answers bytes that are not HTTP, where there is no request yet. */
function refuseMalformedHttp(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, reason] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? [431, "Request Header Fields Too Large"]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? [408, "Request Timeout"]
        : [400, "Bad Request"];
  const refusal = new AdminRefusal(status as number, "framing", "The HTTP request is malformed.", "Send HTTP/1.1.");
  const body = JSON.stringify(refusalBody(refusal));
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
