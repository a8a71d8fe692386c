/** docs/failure-model.md rows 51 to 55 and D7: a body is refused for its size, encoding or bytes before it is used. */
import assert from "node:assert/strict";
import test from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { exchange, RawSocket } from "../../rig/raw-socket.ts";
import { CHAT_BODY, causeOf, request, startEcho } from "./echo.ts";

const LIMIT = 4_096;

function post(headers: readonly string[], body: string | Uint8Array): Buffer {
  return request({ headers: [`Content-Length: ${body.length}`, ...headers], body });
}

const json = "Content-Type: application/json";

/** A chat body of exactly this many bytes. */
function bodyOf(bytes: number): string {
  return CHAT_BODY.replace("hi", "x".repeat(bytes - CHAT_BODY.length + 2));
}

const CASES: readonly (readonly [string, Buffer, number, string?])[] = [
  ["row 51: ff fe", post([json], Buffer.from([0xff, 0xfe, 0x7b, 0x7d])), 400, "not_json"],
  ["row 51: overlong c0 af", post([json], splice(0xc0, 0xaf)), 400, "not_json"],
  ["row 51: surrogate ed a0 80", post([json], splice(0xed, 0xa0, 0x80)), 400, "not_json"],
  ["row 51: byte order mark", post([json], Buffer.from(`\ufeff${CHAT_BODY}`)), 400, "not_json"],
  ["row 51: UTF-16", post([json], Buffer.from(CHAT_BODY, "utf16le")), 400, "not_json"],
  ["row 52: lone surrogate escape", post([json], CHAT_BODY.replace("hi", "\\ud800\\u0000")), 200],
  ["row 53: gzip", post([json, "Content-Encoding: gzip"], gzipSync(CHAT_BODY)), 415, "unsupported_media_type"],
  ["row 53: br", post([json, "Content-Encoding: br"], brotliCompressSync(CHAT_BODY)), 415, "unsupported_media_type"],
  ["row 53: stacked", post([json, "Content-Encoding: gzip, br"], CHAT_BODY), 415, "unsupported_media_type"],
  ["row 53: identity", post([json, "Content-Encoding: identity"], CHAT_BODY), 200],
  ["row 54: text/plain", post(["Content-Type: text/plain"], CHAT_BODY), 415, "unsupported_media_type"],
  ["row 54: no type", post([], CHAT_BODY), 415, "unsupported_media_type"],
  ["row 54: utf-16", post([`${json}; charset=utf-16`], CHAT_BODY), 415, "unsupported_media_type"],
  [
    "row 54: multipart",
    post(["Content-Type: multipart/form-data; boundary=x"], CHAT_BODY),
    415,
    "unsupported_media_type",
  ],
  [
    "row 54: application/json-seq",
    post(["Content-Type: application/json-seq"], CHAT_BODY),
    415,
    "unsupported_media_type",
  ],
  ["row 54: charset UTF-8", post([`${json};charset="UTF-8"`], CHAT_BODY), 200],
  ["row 55: the limit", post([json], bodyOf(LIMIT)), 200],
  ["row 55: one byte more", post([json], bodyOf(LIMIT + 1)), 413, "body_too_large"],
  [
    "row 55: content-length 10^12",
    request({ headers: [json, "Content-Length: 1000000000000"], body: "" }),
    413,
    "body_too_large",
  ],
  ["row 55: chunked, the limit", chunked(bodyOf(LIMIT)), 200],
  ["row 55: chunked, one byte more", chunked(bodyOf(LIMIT + 1)), 413, "body_too_large"],
];

function splice(...bytes: readonly number[]): Buffer {
  const [before = "", after = ""] = CHAT_BODY.split("hi");
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
}

function chunked(body: string): Buffer {
  const chunks = body.match(/.{1,1000}/gs) ?? [];
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
  return request({ headers: [json, "Transfer-Encoding: chunked"], body: `${framed}0\r\n\r\n` });
}

for (const [name, bytes, status, cause] of CASES) {
  test(`${name} is ${status}`, async (t) => {
    const echo = await startEcho(t, { bodyBytesMax: LIMIT, limits: { lingerMs: 50 } });
    const [response] = await exchange(echo.target, bytes);
    assert.ok(response);
    assert.equal(response.status, status, response.body);
    if (cause !== undefined) assert.equal(causeOf(response.body), cause);
    if (status === 413) assert.equal(response.headers.connection, "close");
  });
}

test("a bad key is reported before a bad body", async (t) => {
  const echo = await startEcho(t);
  const [response] = await exchange(
    echo.target,
    request({ key: "sk-wrong", headers: ["Content-Length: 1"], body: "{" }),
  );
  assert.equal(response?.status, 401);
});

test("a body in chunks of 16 bytes takes one buffer", async (t) => {
  const echo = await startEcho(t, { bodyBytesMax: 100_000 });
  const body = CHAT_BODY.replace("hi", "x".repeat(50_000));
  const framed = (body.match(/.{1,16}/gs) ?? [])
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    .join("");
  const client = new RawSocket(echo.target);
  client.send(request({ headers: [json, "Transfer-Encoding: chunked"], body: `${framed}0\r\n\r\n` }));
  const [response] = await client.responses(1);
  client.close();
  assert.equal(JSON.parse(response?.body ?? "{}").bytes, body.length);
});
