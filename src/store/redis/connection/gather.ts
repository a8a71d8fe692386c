/**
 * What is written to a connection in one turn of the event loop goes on the wire in one piece: in that turn's check phase, and
 * what is written in a check phase in that of the next turn, for which the loop does not wait.
 *
 * ioredis (6.0.0) can gather commands itself (`enableAutoPipelining`), in a Pipeline for each turn. It gives each of these an
 * accessor of its own (`Object.defineProperty(this, "length", …)`); with it the pipelines outlive their use, with their commands
 * and replies, until the next full collection, and without it they do not: 14 KB for each request (docs/benchmarks.md). It also
 * sends no second pipeline before the first is answered.
 */
import type { Writable } from "node:stream";

/** A client with its connection, which is another one after each `connect`. */
interface Connected {
  readonly stream: Writable;
  on(name: "connect", listener: () => void): unknown;
}

/** Gathers what is written to each connection that the client makes. */
export function gatherWrites(client: Connected): void {
  client.on("connect", () => {
    const { stream } = client;
    const write = stream.write.bind(stream) as (...written: unknown[]) => boolean;
    stream.write = (...written: unknown[]): boolean => {
      if (stream.writableCorked === 0) {
        stream.cork();
        setImmediate(() => stream.uncork());
      }
      return write(...written);
    };
    joinTexts(stream);
  });
}

interface WrittenPiece {
  readonly chunk: unknown;
  readonly encoding: BufferEncoding;
}

/** Commands are texts, and one text goes to the system for 0.5 us less a command than a list of texts. */
function joinTexts(stream: Writable): void {
  const writev = stream._writev?.bind(stream);
  if (!writev) return;
  stream._writev = (pieces, done) => {
    if (pieces.every(isText)) stream._write(pieces.map(({ chunk }) => chunk).join(""), "utf8", done);
    else writev(pieces, done);
  };
}

function isText({ chunk, encoding }: WrittenPiece): boolean {
  return typeof chunk === "string" && encoding === "utf8";
}
