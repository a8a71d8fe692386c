/**
 * A Sentinel whose answers and announcements are controlled by the test, in front of a real Redis. Their order decides
 * how a client follows a failover, and with a real Sentinel it is random. Node's `net`, 127.0.0.1 only.
 */
import { EventEmitter, once } from "node:events";
import { createServer, type Socket } from "node:net";
import { Messages } from "./resp.ts";

export interface ScriptedSentinel {
  readonly port: number;
  /** From now on, requests for the primary's address get no answer until `release`. */
  hold(): void;
  release(): void;
  /** Resolves when the given number of clients waits for the primary's address. */
  waiting(many: number): Promise<void>;
  /** Resolves when the given number of clients has subscribed to announcements. */
  listening(many: number): Promise<void>;
  /** Announces a failover to all subscribers, and resolves when each has received it and closed its connection. */
  announceFailover(): Promise<void>;
  close(): Promise<void>;
}

const CHANNEL = "+switch-master";

/** @param primaryPort the port of the Redis that it names. */
export async function startScriptedSentinel(primaryPort: number): Promise<ScriptedSentinel> {
  const news = new EventEmitter();
  const sockets = new Set<Socket>();
  const listeners = new Set<Socket>();
  const asking = new Set<Socket>();
  let held = false;
  const tell = (socket: Socket) => socket.write(arrayOf("127.0.0.1", `${primaryPort}`));
  const answer = (socket: Socket, words: readonly string[]): void => {
    const [command, question] = words.map((word) => word.toLowerCase());
    if (command === "subscribe") {
      listeners.add(socket);
      socket.write(`*3\r\n${bulk("subscribe")}${bulk(CHANNEL)}:1\r\n`);
    } else if (question === "get-master-addr-by-name") {
      if (held) asking.add(socket);
      else tell(socket);
    } else socket.write(question === "sentinels" ? "*0\r\n" : "+OK\r\n");
    news.emit("change");
  };
  const server = createServer((socket) => {
    const messages = new Messages();
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      for (const message of messages.push(chunk)) answer(socket, wordsOf(message));
    });
    socket.once("close", () => {
      for (const set of [sockets, listeners, asking]) set.delete(socket);
      news.emit("change");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await once(news, "change");
  };
  return {
    port: address.port,
    hold() {
      held = true;
    },
    release() {
      held = false;
      for (const socket of asking) tell(socket);
      asking.clear();
    },
    waiting: (many) => until(() => asking.size >= many),
    listening: (many) => until(() => listeners.size >= many),
    async announceFailover() {
      const told = [...listeners];
      const text = `tollgate 127.0.0.1 ${primaryPort} 127.0.0.1 ${primaryPort}`;
      for (const socket of told) socket.write(arrayOf("message", CHANNEL, text));
      await until(() => told.every((socket) => !listeners.has(socket)));
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The words of a command: every second line after the first. */
function wordsOf(message: Buffer): string[] {
  return message
    .toString()
    .split("\r\n")
    .slice(1)
    .filter((_, i) => i % 2 === 1);
}

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const arrayOf = (...texts: string[]): string => `*${texts.length}\r\n${texts.map(bulk).join("")}`;
