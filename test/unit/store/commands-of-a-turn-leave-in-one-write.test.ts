/** docs/decisions/commands-of-a-cluster-go-alone.md: scripts go alone, and what is written in one turn leaves in one piece. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { evalshaText } from "../../../src/store/redis/connection/encode.ts";
import { gatherWrites } from "../../../src/store/redis/connection/gather.ts";

/** A socket that notes what it is given at once. */
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

test("on each connection that the client makes, in the check phase of the turn", async () => {
  const client = Object.assign(new EventEmitter(), { stream: new Socket() });
  gatherWrites(client);
  for (const stream of [new Socket(), new Socket()]) {
    client.stream = stream;
    client.emit("connect");
    stream.write("a");
    stream.write("b");
    await Promise.resolve();
    stream.write("c");
    assert.deepEqual(stream.pieces, [], "the turn is not over");
    const written = new Promise((resolve) => stream.write("d", resolve));
    await turn();
    assert.deepEqual(stream.pieces, ["abcd"]);
    await written;
    stream.write("e");
    await turn();
    assert.deepEqual(stream.pieces, ["abcd", "e"]);
  }
});

/** As a connection's own: it is given texts as they are. */
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

test("texts as one text, and a list where some are none", async () => {
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

test("a connection that is lost in the turn takes nothing of it, and says so", async () => {
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

test("what is no text is refused before it is sent: Redis would close the connection, with all that waits on it", () => {
  const keys = ["k"];
  assert.throws(() => evalshaText("0".repeat(40), keys, [5 as unknown as string]), TypeError);
  assert.throws(() => evalshaText("0".repeat(40), [undefined as unknown as string], []), TypeError);
  assert.match(evalshaText("0".repeat(40), keys, ["ü"]), /\$1\r\nk\r\n\$2\r\nü\r\n$/);
});
