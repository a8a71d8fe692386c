/**
 * An HTTP server that parses the bytes of its connections itself, as strictly as a strict server. It records every byte
 * and every request, and its answers name the request to which they belong.
 */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";

export interface SeenRequest {
  /** The number of the connection on which it came, from 0. */
  readonly connection: number;
  readonly method: string;
  readonly target: string;
  /** The headers as they came: names in lower case, duplicates included. */
  readonly headers: readonly (readonly [string, string])[];
  /** How its body was delimited. */
  readonly framing: "none" | "length" | "chunked";
  /** Latin-1. */
  readonly body: string;
}

/** Handles a request: returns bytes to answer with (latin-1), or uses the socket itself. */
export type SiteBehavior = (request: SeenRequest, socket: Socket) => string | undefined;

export class RawSite {
  /** All requests, in the order in which they were complete. */
  readonly requests: SeenRequest[] = [];
  /** The targets of all requests whose headers were complete, in that order. */
  readonly heads: string[] = [];
  /** The bytes of each connection, in latin-1. */
  readonly connections: string[] = [];
  /** Bytes that could not be read as a request. */
  readonly garbage: string[] = [];
  readonly sockets = new Set<Socket>();
  /** Replaces the default answer, which names the request; undefined keeps it. */
  behave: SiteBehavior = answerNamed;
  /** Called when the headers are complete, before the body has arrived. */
  onHead: (head: Omit<SeenRequest, "body">, socket: Socket) => void = () => {};
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
  readonly #watchers = new Set<() => void>();
  #port = 0;

  async listen(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as { port: number }).port;
    return this;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Resolves when `condition` is true. It is checked after every event. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#watchers.add(resolve);
      await promise;
    }
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher();
    this.#watchers.clear();
  }

  #serve(socket: Socket): void {
    const connection = this.connections.push("") - 1;
    let rest = "";
    let told = false;
    this.sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      this.sockets.delete(socket);
      this.#notify();
    });
    socket.on("end", () => {
      if (rest !== "") this.garbage.push(rest);
      socket.end();
    });
    socket.on("data", (bytes: Buffer) => {
      const text = bytes.toString("latin1");
      this.connections[connection] += text;
      rest += text;
      for (;;) {
        const head = parseHead(rest);
        if (head === "garbage") {
          this.garbage.push(rest);
          rest = "";
          socket.destroy();
          break;
        }
        if (head === undefined) break;
        if (!told) {
          this.heads.push(head.facts.target);
          this.onHead({ connection, ...head.facts }, socket);
        }
        told = true;
        const body = bodyOf(rest.slice(head.bytes), head.facts.framing, head.length);
        if (body === undefined) break;
        told = false;
        rest = rest.slice(head.bytes + body.bytes);
        const request = { connection, ...head.facts, body: body.text };
        this.requests.push(request);
        const answer = this.behave(request, socket);
        if (answer !== undefined) socket.write(Buffer.from(answer, "latin1"));
      }
      this.#notify();
    });
  }
}

/** Starts a server and closes it after the test. */
export async function startRawSite(context: { after: (task: () => Promise<void>) => void }): Promise<RawSite> {
  const site = await new RawSite().listen();
  context.after(() => site.close());
  return site;
}

/** The answer that names its request: a line with the method, the target and the client's address. */
export function answerNamed(request: SeenRequest): string {
  const address = request.headers.find(([name]) => name === "x-forwarded-for")?.[1] ?? "nobody";
  return answerOf(`${request.method} ${request.target} for ${address}\n`, request.method);
}

/** A complete answer with a content-length. */
export function answerOf(body: string, method = "GET", head = "HTTP/1.1 200 OK"): string {
  return `${head}\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n${method === "HEAD" ? "" : body}`;
}

interface Head {
  readonly bytes: number;
  readonly length: number;
  readonly facts: Omit<SeenRequest, "body" | "connection">;
}

function parseHead(text: string): Head | "garbage" | undefined {
  const end = text.indexOf("\r\n\r\n");
  const [line = "", ...lines] = (end === -1 ? text : text.slice(0, end)).split("\r\n");
  const start = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^ ]+) HTTP\/1\.[01]$/.exec(line);
  if (!start) return end === -1 && line.length < 10_000 && !text.includes("\r\n") ? undefined : "garbage";
  if (end === -1) return undefined;
  const headers = lines.map((each) => {
    const at = each.indexOf(":");
    return [each.slice(0, at).toLowerCase(), each.slice(at + 1).trim()] as const;
  });
  const all = (name: string) => headers.filter(([each]) => each === name).map(([, value]) => value);
  const codings = all("transfer-encoding");
  const lengths = all("content-length");
  if (codings.length + lengths.length > 1 || !/^[0-9]*$/.test(lengths[0] ?? "")) return "garbage";
  if (codings.length === 1 && codings[0] !== "chunked") return "garbage";
  const framing = codings.length === 1 ? "chunked" : lengths.length === 1 ? "length" : "none";
  const facts = { method: start[1] as string, target: start[2] as string, headers, framing } as const;
  return { bytes: end + 4, length: Number(lengths[0] ?? 0), facts };
}

/** The body at the beginning of `text`; undefined while it is not complete. Invalid chunks are never complete. */
function bodyOf(text: string, framing: SeenRequest["framing"], length: number) {
  if (framing !== "chunked") return text.length < length ? undefined : { bytes: length, text: text.slice(0, length) };
  let at = 0;
  let whole = "";
  for (;;) {
    const line = /^([0-9a-fA-F]{1,8})\r\n/.exec(text.slice(at, at + 12));
    if (!line) return undefined;
    const size = Number.parseInt(line[1] as string, 16);
    at += line[0].length;
    if (text.length < at + size + 2 || text.slice(at + size, at + size + 2) !== "\r\n") return undefined;
    whole += text.slice(at, at + size);
    at += size + 2;
    if (size === 0) return { bytes: at, text: whole };
  }
}
