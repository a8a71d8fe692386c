/**
 * Small pieces of a stream are put into chunks by src/accept/reply.ts, large ones by Node. The client gets the bytes in
 * order, in chunks that follow RFC 9112 section 7.1, and the end after them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import type { Reply } from "../../../src/accept/reply.ts";
import { RawSocket } from "../../rig/raw-socket.ts";

import { CHAT_BODY, request, startEcho } from "./echo.ts";

/** The chunked answers on one connection, each chunk by its length. Fails if there are bytes between or after them. */
function chunked(received: string): { readonly text: string; readonly sizes: readonly number[] }[] {
  const found: { text: string; sizes: number[] }[] = [];
  for (let at = 0; at < received.length; ) {
    const head = received.slice(at, received.indexOf("\r\n\r\n", at) + 4);
    assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(head, /\r\ntransfer-encoding: chunked\r\n/i);
    at += head.length;
    const answer = { text: "", sizes: [] as number[] };
    found.push(answer);
    for (let size = -1; size !== 0; ) {
      const [line = "", hex = ""] = /^([0-9a-f]+)\r\n/.exec(received.slice(at, at + 20)) ?? [];
      size = Number.parseInt(hex, 16);
      at += line.length;
      answer.text += received.slice(at, at + size);
      at += size;
      assert.equal(received.slice(at, at + 2), "\r\n");
      at += 2;
      answer.sizes.push(size);
    }
  }
  return found;
}

interface Piece {
  readonly bytes: number;
  /** Whether a turn of the event loop ends after it. */
  readonly last: boolean;
}

async function write(reply: Reply, pieces: readonly Piece[], end: number | undefined): Promise<string> {
  let text = "";
  const next = (bytes: number): Buffer => {
    const piece = String.fromCharCode(97 + (text.length % 26)).repeat(bytes);
    text += piece;
    return Buffer.from(piece);
  };
  reply.open(200, {});
  for (const { bytes, last } of pieces) {
    reply.write(next(bytes));
    if (last) await nextTurn();
  }
  reply.end(end === undefined ? undefined : next(end));
  return text;
}

const sizes = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1_000, max: 1_050 }), fc.constant(70_000));
const streams = fc.record({
  pieces: fc.array(fc.record({ bytes: sizes, last: fc.boolean() }), { maxLength: 12 }),
  end: fc.option(sizes, { nil: undefined }),
});

test("three answers on one connection arrive complete, whatever the sizes of the pieces and however many are written in one turn", async (t) => {
  let planned: { pieces: readonly Piece[]; end: number | undefined } = { pieces: [], end: undefined };
  let wrote: string[] = [];
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    wrote.push(await write(reply, planned.pieces, planned.end));
    await reply.finished;
  });
  await fc.assert(
    fc.asyncProperty(streams, async (stream) => {
      planned = stream;
      wrote = [];
      const client = new RawSocket(echo.target).send(request({}), request({}), request({}));
      await client.responses(3);
      client.close();
      assert.deepEqual(
        chunked(client.text).map(({ text }) => text),
        wrote,
      );
    }),
    { numRuns: 200 },
  );
  assert.deepEqual(echo.crashes, []);
});

test("a small piece gets a chunk of its own, and one written in the same turn as a large one before it joins that chunk", async (t) => {
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    const pieces = [
      { bytes: 10, last: true },
      { bytes: 1_024, last: true },
      { bytes: 20, last: false },
      { bytes: 1_025, last: false },
      { bytes: 30, last: true },
      { bytes: 2_000, last: true },
    ];
    await write(reply, pieces, 7);
  });
  const client = new RawSocket(echo.target).send(request({}));
  await client.responses(1);
  client.close();
  assert.deepEqual(chunked(client.text)[0]?.sizes, [10, 1_024, 20, 1_055, 2_000, 7, 0]);
});

test("an end without bytes ends the body once, and nothing follows it", async (t) => {
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    await write(reply, [{ bytes: 10, last: true }], 0);
  });
  const length = `Content-Length: ${CHAT_BODY.length}`;
  // The connection ends with the answer, so that all bytes are checked.
  const headers = ["Content-Type: application/json", length, "Connection: close"];
  const client = new RawSocket(echo.target).send(request({ headers }));
  await client.responsesUntilClosed();
  assert.deepEqual(
    chunked(client.text).map(({ sizes }) => sizes),
    [[10, 0]],
  );
});

test("an answer delimited by the end of its connection has no chunks", async (t) => {
  let wrote = "";
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    wrote = await write(reply, [{ bytes: 10, last: true }], 20);
  });
  const client = new RawSocket(echo.target).send(request({ line: "POST /v1/chat/completions HTTP/1.0" }));
  const [answer] = await client.responsesUntilClosed();
  assert.equal(answer?.headers["transfer-encoding"], undefined);
  assert.equal(answer?.body, wrote);
});

test("a writer that is faster than the client gets backpressure, however small the pieces are", async (t) => {
  const waits = Promise.withResolvers<number>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, {});
    let pieces = 1;
    while (reply.write(Buffer.alloc(100, "a")) && pieces < 100_000) pieces++;
    waits.resolve(pieces);
    reply.end();
  });
  const client = new RawSocket(echo.target).send(request({}));
  const pieces = await waits.promise;
  assert.ok(pieces < 10_000, `${pieces} pieces`);
  client.close(true);
});
