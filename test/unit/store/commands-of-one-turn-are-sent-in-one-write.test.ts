/**
 * docs/decisions/commands-of-a-cluster-go-alone.md: each script is a command of its own, and everything written in one turn is
 * sent in one piece.
 */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { evalshaText } from "../../../src/store/redis/connection/encode.ts";
import { gatherWrites } from "../../../src/store/redis/connection/gather.ts";

/** A socket that records each piece written to it. */
class Socket extends Writable {
  readonly pieces: string[] = [];

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.pieces.push(String(chunk));
    done();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void): void {
    this.pieces.push(chunks.map(({ chunk }) => String(chunk)).join(""));
    done();
  }
}

test("on each new connection, writes of one turn are sent together in the check phase", async () => {
  const client = Object.assign(new EventEmitter(), { stream: new Socket() });
  gatherWrites(client);
  for (const stream of [new Socket(), new Socket()]) {
    client.stream = stream;
    client.emit("connect");
    stream.write("a");
    stream.write("b");
    await Promise.resolve();
    stream.write("c");
    assert.deepEqual(stream.pieces, [], "the turn has not ended");
    const written = new Promise((resolve) => stream.write("d", resolve));
    await turn();
    assert.deepEqual(stream.pieces, ["abcd"]);
    await written;
    stream.write("e");
    await turn();
    assert.deepEqual(stream.pieces, ["abcd", "e"]);
  }
});

/** Like the socket of a connection: it receives strings undecoded. */
class TextSocket extends Writable {
  readonly texts: string[] = [];
  readonly lists: number[] = [];

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(chunk: string | Buffer, encoding: BufferEncoding, done: () => void): void {
    this.texts.push(`${encoding} ${chunk}`);
    done();
  }

  override _writev(chunks: readonly unknown[], done: () => void): void {
    this.lists.push(chunks.length);
    done();
  }
}

test("strings are joined to one string, and a list is sent if some chunks are no UTF-8 strings", async () => {
  const client = Object.assign(new EventEmitter(), { stream: new TextSocket() });
  gatherWrites(client);
  client.emit("connect");
  const { stream } = client;
  const written: Promise<unknown>[] = [];
  const write = (...what: [string | Buffer, BufferEncoding?]) =>
    written.push(new Promise((resolve) => stream.write(what[0], what[1] ?? "utf8", resolve)));
  write("ä");
  write("b");
  await turn();
  assert.deepEqual(stream.texts, ["utf8 äb"]);
  write("c");
  write(Buffer.from("d"));
  await turn();
  write("e");
  write("66", "hex");
  await turn();
  assert.deepEqual(stream.lists, [2, 2]);
  await Promise.all(written);
});

test("a connection lost within the turn sends none of its writes, and reports the error", async () => {
  const client = Object.assign(new EventEmitter(), { stream: new Socket() });
  gatherWrites(client);
  client.emit("connect");
  const { stream } = client;
  const failed = new Promise((resolve) => stream.write("a", resolve));
  stream.destroy();
  assert.equal(((await failed) as NodeJS.ErrnoException).code, "ERR_STREAM_DESTROYED");
  await turn();
  assert.deepEqual(stream.pieces, []);
});

test("a value that is no string is refused before it is sent, since Redis would close the connection with everything that waits on it", () => {
  const keys = ["k"];
  assert.throws(() => evalshaText("0".repeat(40), keys, [5 as unknown as string]), TypeError);
  assert.throws(() => evalshaText("0".repeat(40), [undefined as unknown as string], []), TypeError);
  assert.match(evalshaText("0".repeat(40), keys, ["ü"]), /\$1\r\nk\r\n\$2\r\nü\r\n$/);
});
