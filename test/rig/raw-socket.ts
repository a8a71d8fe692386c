/**
 * A client that sends exactly the given bytes, and reads the responses as HTTP/1.1. For input that no HTTP library
 * would send.
 */
import { connect, type NetConnectOpts, type Socket } from "node:net";

export interface RawResponse {
  readonly status: number;
  /** Names in lower case; of duplicates the last. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** False if the connection ended within the body. */
  readonly complete: boolean;
}

/** Where to connect: a port of 127.0.0.1, or the path of a unix socket. */
export type Target = { readonly port: number } | { readonly path: string };

export class RawSocket {
  readonly socket: Socket;
  /** Resolves when the connection is closed by either side, in any way. */
  readonly closed: Promise<void>;
  #received = Buffer.alloc(0);
  #isClosed = false;
  readonly #watchers = new Set<() => void>();

  constructor(target: Target) {
    const options: NetConnectOpts = "port" in target ? { host: "127.0.0.1", port: target.port } : { path: target.path };
    this.socket = connect({ ...options, allowHalfOpen: true, noDelay: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#notify();
    });
    // A server may close with a reset. The close event follows.
    this.socket.on("error", () => {});
    this.socket.on("end", () => this.socket.end());
    this.socket.on("close", () => {
      this.#isClosed = true;
      resolve();
      this.#notify();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends bytes; text is sent as latin1, one byte for each character. */
  send(...pieces: readonly (string | Uint8Array)[]): this {
    for (const piece of pieces) this.socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
    return this;
  }

  /** Everything received so far, as latin1. */
  get text(): string {
    return this.#received.toString("latin1");
  }

  /** Resolves when `condition` is true for the received text, or the connection has closed. */
  async until(condition: (text: string) => boolean): Promise<string> {
    while (!this.#isClosed && !condition(this.text)) await this.#change();
    return this.text;
  }

  /** Waits for `count` final responses, or for the close. Interim (1xx) responses are skipped. */
  async responses(count: number): Promise<readonly RawResponse[]> {
    for (;;) {
      const found = parseResponses(this.#received, this.#isClosed);
      if (found.length >= count || this.#isClosed) return found;
      await this.#change();
    }
  }

  /**
   * Waits for the next final response, and removes it from the received text. @returns undefined if there will be none.
   */
  async next(): Promise<RawResponse | undefined> {
    for (;;) {
      const found = parseResponse(this.#received, 0, this.#isClosed);
      if (found) this.#received = this.#received.subarray(found.end);
      if (found || this.#isClosed) return found?.response;
      await this.#change();
    }
  }

  /** Waits until the server has closed, then returns all responses. */
  async responsesUntilClosed(): Promise<readonly RawResponse[]> {
    await this.closed;
    return parseResponses(this.#received, true);
  }

  /** Closes at once; `reset` sends RST instead of FIN. */
  close(reset = false): void {
    if (reset) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  #change(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#watchers.add(resolve);
    return promise;
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher();
    this.#watchers.clear();
  }
}

/** Opens a connection, sends the pieces, waits for `count` responses and closes. */
export async function exchange(target: Target, bytes: string | Uint8Array, count = 1): Promise<readonly RawResponse[]> {
  const client = new RawSocket(target).send(bytes);
  const found = await client.responses(count);
  client.close();
  return found;
}

/** Opens a connection, sends the bytes, and reads until the server closes. */
export function untilClosed(target: Target, bytes: string | Uint8Array): Promise<readonly RawResponse[]> {
  return new RawSocket(target).send(bytes).responsesUntilClosed();
}

/** The final responses in the received text. The last one may be incomplete only if the connection has closed. */
export function parseResponses(received: Buffer, closed: boolean): readonly RawResponse[] {
  const found: RawResponse[] = [];
  for (let at = 0; ; ) {
    const one = parseResponse(received, at, closed);
    if (one === undefined) return found;
    found.push(one.response);
    if (!one.response.complete) return found;
    at = one.end;
  }
}

/** The first final response from `at` on, and its end. */
function parseResponse(
  received: Buffer,
  from: number,
  closed: boolean,
): { response: RawResponse; end: number } | undefined {
  let at = from;
  for (;;) {
    const headEnd = received.indexOf("\r\n\r\n", at);
    if (headEnd === -1) return undefined;
    const [statusLine = "", ...lines] = received.toString("latin1", at, headEnd).split("\r\n");
    const status = Number(statusLine.split(" ")[1]);
    const headers: Record<string, string> = {};
    for (const line of lines)
      headers[line.slice(0, line.indexOf(":")).toLowerCase()] = line.slice(line.indexOf(":") + 1).trim();
    const bodyStart = headEnd + 4;
    if (status < 200) {
      at = bodyStart;
      continue;
    }
    const body =
      headers["transfer-encoding"] === "chunked"
        ? chunkedBody(received, bodyStart)
        : plainBody(received, bodyStart, status, headers, closed);
    if (!body.complete && !closed) return undefined;
    return { response: { status, headers, body: body.bytes.toString("utf8"), complete: body.complete }, end: body.end };
  }
}

interface ParsedBody {
  readonly bytes: Buffer;
  readonly end: number;
  readonly complete: boolean;
}

const NO_BODY: ReadonlySet<number> = new Set([204, 304]);

function plainBody(
  received: Buffer,
  start: number,
  status: number,
  headers: Readonly<Record<string, string>>,
  closed: boolean,
): ParsedBody {
  const length = NO_BODY.has(status) ? "0" : headers["content-length"];
  if (length === undefined) return { bytes: received.subarray(start), end: received.length, complete: closed };
  const end = start + Number(length);
  return { bytes: received.subarray(start, end), end, complete: received.length >= end };
}

function chunkedBody(received: Buffer, start: number): ParsedBody {
  const parts: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = received.indexOf("\r\n", at);
    const size = lineEnd === -1 ? Number.NaN : Number.parseInt(received.toString("latin1", at, lineEnd), 16);
    const dataStart = lineEnd + 2;
    if (Number.isNaN(size) || received.length < dataStart + size + 2) {
      return { bytes: Buffer.concat(parts), end: received.length, complete: false };
    }
    if (size === 0) return { bytes: Buffer.concat(parts), end: dataStart + 2, complete: true };
    parts.push(received.subarray(dataStart, dataStart + size));
    at = dataStart + size + 2;
  }
}
