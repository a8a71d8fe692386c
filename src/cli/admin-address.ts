/** The gateway's admin address: a TCP address, called with fetch, or a Unix socket, which fetch does not support. */
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { CliFailure } from "./failure.ts";

const DEFAULT_URL = "http://127.0.0.1:8788";
/** The form of `admin` in the configuration: an address without `http://`, IPv6 in brackets. */
const HOST_AND_PORT = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i;
/** sun_path of unix(7) holds 108 bytes with its final NUL. */
const SOCKET_PATH_BYTES_MAX = 107;
/** A request to a socket needs a host name too; at a socket the admin API accepts any. */
const SOCKET_BASE = "http://localhost";

/** The address as given by options and the environment. */
export interface TypedAddress {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly fetch: typeof fetch;
  /** `--admin`: a URL, HOST:PORT or `unix:PATH`. */
  readonly admin?: string | undefined;
}

export interface AdminAddress {
  /** For people. */
  readonly name: string;
  /** Base URL for paths, without a trailing slash. */
  readonly base: string;
  readonly fetch: typeof fetch;
}

/**
 * The gateway's admin address: `--admin`, else `TOLLGATE_ADMIN_URL`, else the default of the configuration.
 * @throws CliFailure 2 for an invalid address
 */
export function adminAddress({ env, fetch: ask, admin }: TypedAddress): AdminAddress {
  const from = admin === undefined ? "TOLLGATE_ADMIN_URL" : "--admin";
  const typed = admin ?? (env.TOLLGATE_ADMIN_URL || DEFAULT_URL);
  if (typed.startsWith("unix:")) return socketAddress(typed, from);
  const base = readBase(typed, from);
  return { name: base, base, fetch: ask };
}

function readBase(typed: string, from: string): string {
  const text = HOST_AND_PORT.test(typed) ? `http://${typed}` : typed;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    // The text is not shown: it may contain a password.
    throw new CliFailure(
      2,
      `${from} must be an address such as ${DEFAULT_URL}, without user name, password or query, or a socket: unix:PATH.`,
    );
  }
  return url.href.replace(/\/+$/, "");
}

function socketAddress(typed: string, from: string): AdminAddress {
  const path = typed.slice("unix:".length);
  if (path === "" || Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    const form = `unix: and the path of a socket of at most ${SOCKET_PATH_BYTES_MAX} bytes`;
    throw new CliFailure(2, `${from} must be ${form}, such as unix:/run/tollgate/admin.sock.`);
  }
  return { name: typed, base: SOCKET_BASE, fetch: (input, init) => askSocket(path, String(input), init) };
}

/**
 * The part of fetch that the commands need. Redirects are not followed, so that the token is sent nowhere else. Each
 * request has its own connection: the gateway may close a kept one just when it is reused.
 */
async function askSocket(socketPath: string, url: string, init: RequestInit = {}): Promise<Response> {
  // Imported here, so that commands that use no socket start faster.
  const { request } = await import("node:http");
  const { pathname, search, host } = new URL(url);
  const { method = "GET", headers, body, signal } = init;
  const options: RequestOptions = {
    socketPath,
    method,
    path: pathname + search,
    headers: { host, ...(headers as Record<string, string> | undefined) },
    agent: false,
    ...(signal && { signal }),
  };
  const answer = await answerTo(request(options), { body: body as string | undefined, signal });
  // These statuses have no body, and Response does not accept one.
  return new Response([204, 205, 304].includes(answer.status) ? null : answer.body, { status: answer.status });
}

function answerTo(
  asked: ClientRequest,
  { body, signal }: { body: string | undefined; signal: AbortSignal | null | undefined },
): Promise<{ status: number; body: Buffer<ArrayBuffer> }> {
  return new Promise((resolve, reject) => {
    // As in fetch: an aborted request fails with the reason of the abort.
    const fail = (error: Error) => reject(signal?.aborted ? signal.reason : error);
    asked.on("error", fail);
    asked.on("response", (answer: IncomingMessage) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("error", fail);
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(pieces) }));
    });
    asked.end(body);
  });
}
