/** docs/failure-model.md row 55: while the gate decides, only the first part of a body of unknown length is read. */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import test from "node:test";
import { RequestBody, UNPROVEN_BYTES_MAX } from "../../../src/accept/body.ts";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { refusal } from "../../../src/values/errors.ts";

const PIECE = Buffer.alloc(16_384, "x");
const PIECES = 100;

/** A chunked request whose client sends as fast as it is read, and the number of pieces read so far. */
function chunked() {
  let given = 0;
  const source = new Readable({
    highWaterMark: PIECE.length,
    read() {
      this.push(given++ < PIECES ? PIECE : null);
    },
  });
  const headers = new RequestHeaders(["transfer-encoding", "chunked", "content-type", "application/json"]);
  const body = new RequestBody(source as unknown as IncomingMessage, headers, 10_000_000, () => {});
  return { source, body, given: () => given };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

test("reading pauses while the gate decides, and the whole body is read once the gate agrees", async () => {
  const { source, body, given } = chunked();
  const gate = Promise.withResolvers<undefined>();
  const asked = Promise.withResolvers<void>();
  const read = body.read(() => {
    asked.resolve();
    return gate.promise;
  });
  await asked.promise;
  assert.ok(source.isPaused());
  for (let turn = 0; turn < 5; turn++) await settled();
  // The part that is read before the gate, and what the stream buffers.
  assert.ok(given() * PIECE.length <= UNPROVEN_BYTES_MAX + 3 * PIECE.length, `${given()} pieces`);
  gate.resolve(undefined);
  assert.equal(((await read) as Uint8Array).length, PIECES * PIECE.length);
});

test("the rest of a body that the gate refuses is not read", async () => {
  const { body, given } = chunked();
  const unwanted = refusal("body_too_large");
  assert.equal(await body.read(async () => unwanted), unwanted);
  assert.ok(given() < PIECES);
});
