/**
 * A TCP proxy in front of Redis that can be slow, silent or closed, lose replies, or answer in place of Redis. It knows
 * the boundaries of commands and replies, so pipelined ones keep their order. Node's `net`, 127.0.0.1 only.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Messages } from "./resp.ts";

export interface FaultProxy {
  readonly port: number;
  readonly url: string;
  /** Passes the next script on, and loses its reply by closing the connection. */
  loseNextReply(): void;
  /** Passes the next script on, and holds its reply and all later ones on this connection, which stays open. */
  swallowNextReply(): void;
  /** Answers the next `times` scripts with this error, without passing them to Redis. 0 ends it. */
  answerWith(error: string, times: number): void;
  /** Delays every reply from now on. */
  delay(ms: number): void;
  /**
   * Accepts connections and bytes, and passes nothing on in either direction until it is switched off, and then
   * everything.
   */
  blackHole(on: boolean): void;
  /** Resets all connections and refuses new ones, until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** The number of scripts whose reply was lost or replaced. */
  readonly faults: () => number;
  /** The number of scripts that were passed to Redis. */
  readonly asked: () => number;
  close(): Promise<void>;
}

interface Faults {
  next: "lose" | "swallow" | undefined;
  error: string;
  times: number;
  delayMs: number;
  hole: boolean;
  count: number;
  asked: number;
}

/** What the client gets next, in order: a reply of Redis or one of the proxy. */
type Owed = { readonly kind: "reply" | "lose" | "swallow" } | { readonly kind: "own"; readonly bytes: Buffer };

export async function startFaultProxy(redisPort: number): Promise<FaultProxy> {
  const faults: Faults = {
    next: undefined,
    error: "",
    times: 0,
    delayMs: 0,
    hole: false,
    count: 0,
    asked: 0,
  };
  const links = new Set<Link>();
  const open = (): Server =>
    createServer((client) => {
      const link = new Link(client, redisPort, faults);
      links.add(link);
      client.once("close", () => links.delete(link));
    });
  let server = open().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const { port } = address;
  const refuse = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const link of links) link.end();
    await closed;
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    loseNextReply() {
      faults.next = "lose";
    },
    swallowNextReply() {
      faults.next = "swallow";
    },
    answerWith(text, count) {
      faults.error = text;
      faults.times = count;
    },
    delay(ms) {
      faults.delayMs = ms;
    },
    blackHole(on) {
      faults.hole = on;
      if (!on) for (const link of links) link.goOn();
    },
    refuse,
    async accept() {
      server = open().listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    faults: () => faults.count,
    asked: () => faults.asked,
    close: refuse,
  };
}

const SCRIPT = /^\*\d+\r\n\$(7\r\nevalsha|4\r\neval)\r\n/i;

/** One client's connection, and the proxy's connection to Redis. */
class Link {
  readonly #client: Socket;
  readonly #redis: Socket;
  readonly #faults: Faults;
  readonly #commands = new Messages();
  readonly #replies = new Messages();
  readonly #owed: Owed[] = [];
  readonly #held: (() => void)[] = [];
  readonly #late: { readonly bytes: Buffer; readonly dueMs: number }[] = [];
  #silent = false;

  constructor(client: Socket, redisPort: number, faults: Faults) {
    this.#client = client;
    this.#redis = connect(redisPort, "127.0.0.1");
    this.#faults = faults;
    for (const socket of [client, this.#redis]) {
      socket.on("error", () => undefined);
      socket.on("close", () => this.end());
    }
    client.on("data", (chunk: Buffer) => this.#pass(() => this.#fromClient(chunk)));
    this.#redis.on("data", (chunk: Buffer) => this.#pass(() => this.#fromRedis(chunk)));
  }

  end(): void {
    this.#client.destroy();
    this.#redis.destroy();
  }

  goOn(): void {
    for (const step of this.#held.splice(0)) step();
  }

  #pass(step: () => void): void {
    if (this.#faults.hole) this.#held.push(step);
    else step();
  }

  #fromClient(chunk: Buffer): void {
    for (const command of this.#commands.push(chunk)) this.#command(command);
    this.#flushOwn();
  }

  #command(command: Buffer): void {
    const script = SCRIPT.test(command.toString("latin1", 0, 64));
    if (script && this.#faults.times > 0) {
      this.#faults.times--;
      this.#faults.count++;
      this.#owed.push({ kind: "own", bytes: Buffer.from(`-${this.#faults.error}\r\n`) });
      return;
    }
    const fault = script ? this.#faults.next : undefined;
    if (fault) this.#faults.next = undefined;
    this.#owed.push({ kind: fault ?? "reply" });
    if (script) this.#faults.asked++;
    this.#redis.write(command);
  }

  #fromRedis(chunk: Buffer): void {
    for (const reply of this.#replies.push(chunk)) {
      const owed = this.#owed.shift();
      if (!owed || owed.kind === "own") throw new Error("there was no reply of Redis");
      if (owed.kind !== "reply") this.#faults.count++;
      if (owed.kind === "lose") {
        this.end();
        return;
      }
      this.#silent ||= owed.kind === "swallow";
      this.#toClient(reply);
      this.#flushOwn();
    }
  }

  #flushOwn(): void {
    for (let first = this.#owed[0]; first?.kind === "own"; first = this.#owed[0]) {
      this.#owed.shift();
      this.#toClient(first.bytes);
    }
  }

  /** Sends replies in the order in which they came, even if the delay has changed, as a real server does. */
  #toClient(bytes: Buffer): void {
    if (this.#silent) return;
    const dueMs = performance.now() + this.#faults.delayMs;
    if (this.#faults.delayMs === 0 && this.#late.length === 0) this.#client.write(bytes);
    else if (this.#late.push({ bytes, dueMs }) === 1) this.#sendLate();
  }

  #sendLate(): void {
    for (let first = this.#late[0]; first; first = this.#late[0]) {
      const waitMs = first.dueMs - performance.now();
      if (waitMs > 0) {
        setTimeout(() => this.#sendLate(), waitMs);
        return;
      }
      this.#late.shift();
      if (!this.#client.destroyed) this.#client.write(first.bytes);
    }
  }
}
