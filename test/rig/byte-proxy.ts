/**
 * A TCP proxy in front of an HTTP server that changes the bytes of an answer: it cuts the answer, resets it, stops
 * sending, replaces bytes or adds some. It only knows that an answer begins after the bytes of a request, so there must
 * be one request at a time on a connection. Node's `net`, 127.0.0.1 only.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A fault of one answer. Positions count its bytes from 0, including the headers. */
export type ByteFault =
  /** The bytes up to `at`, then FIN in both directions. */
  | { readonly kind: "end"; readonly at: number }
  /** The bytes up to `at`, then RST. */
  | { readonly kind: "reset"; readonly at: number }
  /** The bytes up to `at`, then a FIN, while the other direction stays open. */
  | { readonly kind: "half_close"; readonly at: number }
  /** The bytes up to `at`, then nothing, on a connection that stays open. */
  | { readonly kind: "silence"; readonly at: number }
  /** All bytes, but those from `at` on are replaced by the given ones. */
  | { readonly kind: "corrupt"; readonly at: number; readonly bytes: Uint8Array }
  /** All bytes, each in its own write. */
  | { readonly kind: "trickle" }
  /**
   * All bytes, and the given ones in the same packet as the last of them: after the last chunk, or beyond the
   * content-length.
   */
  | { readonly kind: "surplus"; readonly bytes: Uint8Array };

export interface ByteProxy {
  readonly port: number;
  /** `http://127.0.0.1:port/v1`. */
  readonly url: string;
  /** The number of connections that were made to it. */
  readonly connections: () => number;
  /** The number of answers that were changed. */
  readonly faults: () => number;
  /** Changes the next `times` answers. */
  spoil(fault: ByteFault, times?: number): void;
  /** Forgets the faults that have not been used. */
  clear(): void;
  close(): Promise<void>;
}

interface Plan {
  readonly faults: ByteFault[];
  struck: number;
}

/** Starts a proxy to a port of 127.0.0.1. */
export async function startByteProxy(targetPort: number): Promise<ByteProxy> {
  const plan: Plan = { faults: [], struck: 0 };
  const links = new Set<Link>();
  let connections = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    connections += 1;
    const link = new Link(client, targetPort, plan);
    links.add(link);
    client.once("close", () => links.delete(link));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}/v1`,
    connections: () => connections,
    faults: () => plan.struck,
    spoil(fault, times = 1) {
      for (let i = 0; i < times; i++) plan.faults.push(fault);
    },
    clear() {
      plan.faults.length = 0;
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const link of links) link.destroy();
      await closed;
    },
  };
}

/** One client's connection, and the proxy's connection to the server. */
class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #plan: Plan;
  #fault: ByteFault | undefined;
  /** Whether bytes of an answer have come since the last bytes of a request. */
  #answering = true;
  /** Bytes of the current answer so far. */
  #passed = 0;
  #deaf = false;
  /** What has arrived of an answer to which bytes are added. */
  #ending: Buffer = Buffer.alloc(0);

  constructor(client: Socket, targetPort: number, plan: Plan) {
    this.#client = client;
    this.#server = connect({ port: targetPort, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    this.#plan = plan;
    for (const [from, to] of [
      [client, this.#server],
      [this.#server, client],
    ] as const) {
      from.on("error", () => undefined);
      from.on("end", () => this.#deaf || to.end());
      from.on("close", () => to.destroy());
    }
    client.on("data", (chunk: Buffer) => this.#ask(chunk));
    this.#server.on("data", (chunk: Buffer) => this.#answer(chunk));
    client.on("drain", () => this.#server.resume());
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #ask(chunk: Buffer): void {
    if (this.#answering) {
      this.#answering = false;
      this.#passed = 0;
      this.#ending = Buffer.alloc(0);
      this.#fault = this.#plan.faults.shift();
    }
    this.#server.write(chunk);
  }

  #answer(chunk: Buffer): void {
    this.#answering = true;
    if (this.#deaf) return;
    const before = this.#passed;
    this.#passed += chunk.length;
    const fault = this.#fault;
    if (!fault) {
      if (!this.#client.write(chunk)) this.#server.pause();
    } else if (fault.kind === "trickle") {
      this.#strike(before);
      for (const byte of chunk) this.#client.write(Buffer.of(byte));
    } else if (fault.kind === "surplus") {
      this.#surplus(chunk, fault.bytes);
    } else if (fault.kind === "corrupt") {
      this.#corrupt(chunk, before, fault);
    } else if (this.#passed < fault.at) {
      this.#client.write(chunk);
    } else {
      this.#cut(chunk.subarray(0, fault.at - before), fault.kind);
    }
  }

  #surplus(chunk: Buffer, bytes: Uint8Array): void {
    this.#ending = Buffer.concat([this.#ending, chunk]);
    const over = isWhole(this.#ending);
    if (over) this.#plan.struck += 1;
    this.#client.write(over ? Buffer.concat([chunk, bytes]) : chunk);
  }

  #strike(before: number): void {
    if (before === 0) this.#plan.struck += 1;
  }

  #corrupt(chunk: Buffer, before: number, { at, bytes }: { at: number; bytes: Uint8Array }): void {
    const from = Math.max(at, before);
    const to = Math.min(at + bytes.length, before + chunk.length);
    if (from < to) {
      chunk.set(bytes.subarray(from - at, to - at), from - before);
      if (from === at) this.#plan.struck += 1;
    }
    this.#client.write(chunk);
  }

  #cut(last: Buffer, kind: "end" | "reset" | "half_close" | "silence"): void {
    this.#plan.struck += 1;
    this.#deaf = true;
    const then = (): void => {
      if (kind === "reset") this.#client.resetAndDestroy();
      else if (kind === "end") this.#client.destroySoon();
      else if (kind === "half_close") this.#client.end();
    };
    if (last.length === 0) then();
    // Written to the kernel first, so that the bytes arrive before the reset if the reader is quick.
    else this.#client.write(last, then);
  }
}

/** Whether these bytes are a complete answer, by its content-length or its last chunk. */
function isWhole(answer: Buffer): boolean {
  const headEnd = answer.indexOf("\r\n\r\n");
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.toString("latin1", 0, headEnd))?.[1];
  if (length !== undefined) return answer.length === headEnd + 4 + Number(length);
  return answer.subarray(-5).toString("latin1") === "0\r\n\r\n";
}
