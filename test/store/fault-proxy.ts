/** A TCP proxy in front of Redis that can lose a reply or answer in Redis' place. Node's `net`, 127.0.0.1 only. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface FaultProxy {
  readonly url: string;
  /** Lets the next script run and loses its reply with the connection. */
  loseNextReply(): void;
  /** Answers the next `times` scripts with this error, and does not let Redis see them. */
  answerWith(error: string, times: number): void;
  /** How many scripts were lost or answered. */
  readonly faults: () => number;
  close(): Promise<void>;
}

export async function startFaultProxy(redisPort: number): Promise<FaultProxy> {
  let loseReply = false;
  let error = "";
  let times = 0;
  let faults = 0;
  const sockets = new Set<Socket>();

  const server = createServer((client) => {
    const upstream = connect(redisPort, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    let losing = false;
    // One test sends one command at a time, so a chunk is a command, and its reply a chunk.
    client.on("data", (chunk: Buffer) => {
      const isScript = /\$(7\r\nevalsha|4\r\neval)\r\n/i.test(chunk.toString("latin1"));
      if (isScript && times > 0) {
        times--;
        faults++;
        client.write(`-${error}\r\n`);
        return;
      }
      losing = isScript && loseReply;
      upstream.write(chunk);
    });
    upstream.on("data", (chunk: Buffer) => {
      if (!losing) {
        client.write(chunk);
        return;
      }
      loseReply = false;
      faults++;
      client.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `redis://127.0.0.1:${address.port}`,
    loseNextReply() {
      loseReply = true;
    },
    answerWith(text, count) {
      error = text;
      times = count;
    },
    faults: () => faults,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
