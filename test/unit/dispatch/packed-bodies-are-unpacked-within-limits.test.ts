/**
 * docs/failure-model.md row C7: a body compressed without being requested so is decompressed within limits, or refused.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { promisify } from "node:util";
import {
  brotliCompressSync,
  brotliDecompress,
  deflateSync,
  gunzip,
  gzipSync,
  inflate,
  zstdCompressSync,
  zstdDecompress,
} from "node:zlib";
import { WHOLE_BYTES_MAX } from "../../../src/dispatch/attempt.ts";
import { BUFFERED_BYTES_MAX } from "../../../src/dispatch/upstream/handed-body.ts";
import { ask, assertAnswered, rawServer, readRest, refusalIn, rig, route, settled, upstream } from "./rig.ts";

const UNPACK = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  deflate: promisify(inflate),
  zstd: promisify(zstdDecompress),
};
const PACK = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync, zstd: zstdCompressSync } as const;

async function serving(t: test.TestContext, type: string, encoding: string, body: Buffer, more = {}) {
  const base = await rawServer(t, ({ socket }) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-encoding: ${encoding}\r\n`);
    socket.write(`content-length: ${body.length}\r\n\r\n`);
    socket.write(body);
  });
  return rig(t, [upstream("east", base, more)]).dispatcher;
}

for (const [encoding, pack] of Object.entries(PACK)) {
  test(`${encoding}: a reply and a stream are decompressed`, async (t) => {
    const whole = await serving(t, "application/json", encoding, pack(Buffer.from('{"ok":true}')));
    const reply = await whole.run(ask([route("east")], { stream: false }));
    assertAnswered(reply);
    assert.equal(String(Buffer.concat(reply.token.chunks)), '{"ok":true}');
    const events = "data: hello\n\n".repeat(20_000);
    const streaming = await serving(t, "text/event-stream", encoding, pack(Buffer.from(events)));
    const stream = await streaming.run(ask([route("east")]));
    assertAnswered(stream);
    const rest = await readRest(stream);
    assert.equal(rest.fault, undefined);
    assert.equal(rest.text.length, events.length);
  });

  test(`${encoding}: what a client does not read is not decompressed`, async (t) => {
    const length = 8 * 1024 * 1024;
    const packed = pack(Buffer.alloc(length, 0x20));
    const dispatcher = await serving(t, "text/event-stream", encoding, packed);
    const stream = await dispatcher.run(ask([route("east")]));
    assertAnswered(stream);
    const { body } = stream;
    assert.ok(body);
    body.pause(true);
    // As long as decompressing all of it takes.
    for (let times = 0; times < 4; times++) await UNPACK[encoding as keyof typeof PACK](packed);
    assert.ok(body.bytesReceived < 4 * BUFFERED_BYTES_MAX, `${body.bytesReceived} bytes`);
    body.resume();
    assert.equal((await readRest(stream)).text.length, length);
  });

  test(`${encoding}: a bomb ends as upstream_invalid`, async (t) => {
    const bomb = pack(Buffer.alloc(WHOLE_BYTES_MAX + 1));
    assert.ok(bomb.length < 100_000);
    const dispatcher = await serving(t, "application/json", encoding, bomb);
    const result = await dispatcher.run(ask([route("east")], { stream: false }));
    assert.equal(refusalIn(result).cause, "upstream_invalid");
    assert.equal(result.attempts.length, 1);
    assert.deepEqual([...dispatcher.inFlight()], [["east", 0]]);
  });
}

test("stacked, unknown and wrong encodings are upstream_invalid", async (t) => {
  for (const encoding of ["gzip, gzip", "gzip, br", "compress", "gzip"]) {
    const dispatcher = await serving(t, "application/json", encoding, Buffer.from("{}"));
    const result = await dispatcher.run(ask([route("east")], { stream: false }));
    assert.equal(refusalIn(result).cause, "upstream_invalid", encoding);
  }
});

test("an upstream that has sent everything frees its slot, however slowly the client reads the decompressed data", async (t) => {
  const text = `data: ${"x".repeat(8 * BUFFERED_BYTES_MAX)}\n\n`;
  const dispatcher = await serving(t, "text/event-stream", "gzip", gzipSync(Buffer.from(text)), { maxConcurrency: 1 });
  const run = () => dispatcher.run(ask([route("east")]));
  const slow = await run();
  assertAnswered(slow);
  const taken: Uint8Array[] = [...slow.token.chunks];
  const isOver = Promise.withResolvers<void>();
  slow.body?.pause();
  slow.body?.consume({ data: (chunk) => taken.push(chunk), end: isOver.resolve, error: isOver.reject });
  while (dispatcher.inFlight().get("east") !== 0) await settled();
  assert.ok(Buffer.concat(taken).length < text.length, "the client has not resumed reading");
  const other = await run();
  assertAnswered(other);
  assert.equal((await readRest(other)).text, text);
  slow.body?.resume();
  await isOver.promise;
  assert.equal(Buffer.concat(taken).toString(), text);
});

test("a compressed stream ends as upstream_invalid after 256 MiB", async (t) => {
  const mib = 1024 * 1024;
  // Each member of the stream stands for a MiB.
  const packed = Buffer.concat(Array(300).fill(gzipSync(Buffer.alloc(mib, 0x20))));
  const dispatcher = await serving(t, "text/event-stream", "gzip", packed);
  const accepts = { chunk: () => "accept" as const, end: () => "accept" as const, whole: () => "accept" as const };
  const result = await dispatcher.run(ask([route("east")], { inspector: accepts }));
  assertAnswered(result);
  const ended = Promise.withResolvers<string>();
  const { body } = result;
  body?.consume({ data() {}, end: () => ended.resolve("end"), error: ({ cause }) => ended.resolve(cause) });
  assert.equal(await ended.promise, "upstream_invalid");
  const bytes = body?.bytesReceived ?? 0;
  assert.ok(bytes > 255 * mib && bytes <= 256 * mib, `${bytes} bytes`);
});

test("a compressed stream that is cut is an error, not an end", async (t) => {
  const packed = gzipSync(Buffer.from(`data: ${Array.from({ length: 40_000 }, Math.random).join()}\n\n`));
  const dispatcher = await serving(t, "text/event-stream", "gzip", packed.subarray(0, packed.length / 2));
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  assert.equal((await readRest(result)).fault?.cause, "upstream_invalid");
});

test("identity is no encoding, and a reply above the size limit is refused without any decompression, too", async (t) => {
  const plain = await serving(t, "application/json", "identity", Buffer.from("{}"));
  assertAnswered(await plain.run(ask([route("east")], { stream: false })));
  const long = await serving(t, "application/json", "identity", Buffer.alloc(WHOLE_BYTES_MAX + 1, 0x20));
  const result = await long.run(ask([route("east")], { stream: false }));
  assert.equal(refusalIn(result).cause, "upstream_invalid");
});
