/** docs/failure-model.md row D7: each chunk of a body costs time, however small it is, so their number is bounded by the bytes in them. */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import test from "node:test";
import { RequestBody } from "../../../src/accept/body.ts";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, causeOf, request, startEcho } from "./echo.ts";

const CHUNKS_MAX = 65_536;
const BYTES_PER_CHUNK = 16;

/** A chat body of so many bytes, in chunks of the same size. */
function chunked(bytes: number, chunkBytes: number): Buffer {
  const text = CHAT_BODY.replace("hi", "x".repeat(bytes - CHAT_BODY.length + 2));
  const chunks = text.match(new RegExp(`.{1,${chunkBytes}}`, "gs")) ?? [];
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
  const headers = ["Content-Type: application/json", "Transfer-Encoding: chunked"];
  return request({ headers, body: `${framed}0\r\n\r\n` });
}

const CASES: readonly (readonly [string, Buffer, number])[] = [
  ["65,536 chunks of one byte", chunked(CHUNKS_MAX, 1), 200],
  ["100,000 chunks of one byte", chunked(100_000, 1), 413],
  ["100,000 chunks of 15 bytes", chunked(100_000 * 15, 15), 200],
  ["two million bytes in chunks of eight", chunked(2_000_000, 8), 413],
  ["2 MB in chunks of 16 bytes", chunked(2_000_000, BYTES_PER_CHUNK), 200],
];

for (const [name, bytes, status] of CASES) {
  test(`${name}: ${status}`, async (t) => {
    const echo = await startEcho(t, { bodyBytesMax: 4_000_000, limits: { lingerMs: 50 } });
    const [response] = await exchange(echo.target, bytes);
    assert.ok(response);
    assert.equal(response.status, status, response.body);
    if (status === 200) return;
    assert.equal(causeOf(response.body), "body_too_large");
    assert.equal(response.headers.connection, "close");
  });
}

test("a body with a length is accepted in any pieces", async () => {
  const bytes = 2 * CHUNKS_MAX;
  const source = Object.assign(Readable.from(Array.from({ length: bytes }, () => Buffer.from("x"))), {
    complete: true,
  });
  const headers = new RequestHeaders(["content-length", `${bytes}`, "content-type", "application/json"]);
  const body = new RequestBody(source as unknown as IncomingMessage, headers, bytes, () => {});
  const read = await body.read();
  assert.ok(!isRefusal(read), JSON.stringify(read));
  assert.equal(read.length, bytes);
});
