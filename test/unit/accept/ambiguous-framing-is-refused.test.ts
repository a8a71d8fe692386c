/**
 * docs/failure-model.md rows 1 to 16, 22 to 25 and D7: ambiguous or invalid HTTP is refused, and its connection closed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { exchange, RawSocket, untilClosed } from "../../rig/raw-socket.ts";
import { CHAT_BODY, causeOf, KEY, request, startEcho } from "./echo.ts";

const LINE = "POST /v1/chat/completions HTTP/1.1";
const HOST = "Host: gateway.test";
const AUTH = `Authorization: Bearer ${KEY}`;
const JSON_TYPE = "Content-Type: application/json";

function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}

const full = (...lines: readonly string[]) => head(LINE, HOST, AUTH, JSON_TYPE, ...lines);

/** Case, input, accepted statuses; in each case the connection closes and the pipeline sees no request. */
const REFUSED: readonly (readonly [string, string, readonly number[]])[] = [
  [
    "row 1: content-length before transfer-encoding",
    `${full("Content-Length: 6", "Transfer-Encoding: chunked")}0\r\n\r\n`,
    [400],
  ],
  [
    "row 1: transfer-encoding before content-length",
    `${full("Transfer-Encoding: chunked", "Content-Length: 6")}0\r\n\r\n`,
    [400],
  ],
  ...["Content-Length: 1\r\nContent-Length: 2", "Content-Length: 1\r\nContent-Length: 1"].map(twoLines),
  ...["2, 2", "+2", "-1", "0x2", "", "18446744073709551618"].map(
    (value) => [`row 2: content-length ${value || "empty"}`, `${full(`Content-Length: ${value}`)}{}`, [400]] as const,
  ),
  ["row 3: space before the colon", `${full("Content-Length : 2")}{}`, [400]],
  ["row 3: vertical tab in the length", `${full("Content-Length: \x0b2")}{}`, [400]],
  ...["xchunked", "chunked, identity", "chunked\r\nTransfer-Encoding: chunked", "\r\n chunked", "chunked, chunked"].map(
    (value) =>
      [
        `row 4: transfer-encoding ${JSON.stringify(value)}`,
        `${full(`Transfer-Encoding: ${value}`)}0\r\n\r\n`,
        [400],
      ] as const,
  ),
  ["row 5: gzip, chunked", `${full("Transfer-Encoding: gzip, chunked")}2\r\n{}\r\n0\r\n\r\n`, [400]],
  [
    "row 6: transfer-encoding in HTTP/1.0",
    `${head("POST /v1/chat/completions HTTP/1.0", HOST, AUTH, JSON_TYPE, "Transfer-Encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`,
    [400],
  ],
  ["row 7: two hosts", `${full(HOST, "Content-Length: 2")}{}`, [400]],
  ["row 7: no host", `${head(LINE, AUTH, JSON_TYPE, "Content-Length: 2")}{}`, [400]],
  ["row 8: HTTP/0.9", "GET /a\r\n\r\n", [400]],
  [
    "row 9: absolute form",
    `${head("POST http://evil/v1/messages HTTP/1.1", HOST, AUTH, JSON_TYPE, "Content-Length: 2")}{}`,
    [400],
  ],
  ["row 9: OPTIONS *", head("OPTIONS * HTTP/1.1", HOST), [400]],
  ["row 9: CONNECT", head("CONNECT evil:80 HTTP/1.1", "Host: evil:80"), [400]],
  ["row 10: bare LF", `${LINE}\n${HOST}\n${AUTH}\nContent-Length: 2\n\n{}`, [400]],
  ["row 10: CR inside a value", full("X-A: a\rb"), [400]],
  ["row 10: NUL in a value", full("X-A: a\0b"), [400]],
  ["row 10: control character in a value", full("X-A: a\x01b"), [400]],
  ["row 10: space in a name", full("X A: a"), [400]],
  ["row 10: no colon", full("XA"), [400]],
  ["row 15: 17 KB of headers", full(`X-A: ${"x".repeat(17_000)}`), [400, 431]],
  ["row 15: 150 headers", full(...Array.from({ length: 150 }, (_, i) => `x-${i}: 1`)), [400, 431]],
  [
    "row 15: 2,500 headers before the key",
    head(LINE, HOST, ...Array<string>(2_500).fill("a:1"), `x-api-key: ${KEY}`),
    [400, 431],
  ],
  ["row 16: a target of 9 KB", head(`GET /${"x".repeat(9_000)} HTTP/1.1`, HOST), [414]],
  ["row 16: a target above the limit of target and headers", head(`GET /${"x".repeat(20_000)} HTTP/1.1`, HOST), [414]],
  ["row 16: a target that does not end", `GET /${"x".repeat(60_000)}`, [414]],
  [
    "row 15: headers above that limit after a target within its own",
    head(`GET /${"x".repeat(8_000)} HTTP/1.1`, HOST, `X-A: ${"x".repeat(9_000)}`),
    [431],
  ],
  ["row 19: an unknown expectation", `${full("Expect: x", "Content-Length: 2")}{}`, [417]],
  ["row 19: two expectations", `${full("Expect: 100-continue", "Expect: 100-continue", "Content-Length: 2")}{}`, [400]],
  ["row 23: a tab after a header's name", head("GET /v1/models HTTP/1.1", HOST, `X-Api-Key\t: ${KEY}`), [400]],
  [
    "row 53: two content-encodings, of which the first changes nothing",
    `${full("Content-Encoding: identity", "Content-Encoding: gzip", "Content-Length: 2")}{}`,
    [400],
  ],
  ["row 54: two content-types", `${full(JSON_TYPE, "Content-Length: 2")}{}`, [400]],
  ["row 77: an escape in a user agent", `${full("User-Agent: \x1b[31m")}{}`, [400]],
  ["row 77: an escape in the target", head("GET /\x1b[31m HTTP/1.1", HOST), [400]],
  ["row 25: the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]],
];

function twoLines(lines: string): readonly [string, string, readonly number[]] {
  return [`row 2: ${JSON.stringify(lines)}`, `${full(lines)}{}`, [400]];
}

for (const [name, bytes, statuses] of REFUSED) {
  test(`${name} is refused and closes the connection`, async (t) => {
    const echo = await startEcho(t);
    const [response, ...more] = await untilClosed(echo.target, bytes);
    assert.ok(response, "the request is answered");
    assert.ok(statuses.includes(response.status), `${response.status} ${response.body}`);
    assert.match(response.headers["x-request-id"] ?? "", /^req_[0-9A-Za-z]{24}$/);
    assert.equal(response.headers.connection, "close");
    assert.ok(response.complete);
    assert.equal(more.length, 0);
    assert.equal(echo.requests.length, 0);
  });
}

const BAD_CHUNKS = {
  "hexadecimal prefix": "0x2\r\n{}\r\n0\r\n\r\n",
  "negative size": "-2\r\n{}\r\n0\r\n\r\n",
  "size above 2^64": "10000000000000002\r\n{}\r\n0\r\n\r\n",
  "space after the size": "2 \r\n{}\r\n0\r\n\r\n",
  "bare LF": "2\n{}\n0\n\n",
  "no CRLF after the data": "2\r\n{}0\r\n\r\n",
};

for (const [name, chunks] of Object.entries(BAD_CHUNKS)) {
  test(`row 11: a chunk with ${name} is 400 and closes the connection`, async (t) => {
    const echo = await startEcho(t);
    const responses = await untilClosed(echo.target, full("Transfer-Encoding: chunked") + chunks);
    assert.deepEqual(
      responses.map((response) => [response.status, causeOf(response.body)]),
      [[400, "framing"]],
    );
  });
}

test("row 12: a chunk extension of 20 KB is 400 or 413 and closes the connection", async (t) => {
  const echo = await startEcho(t);
  const bytes = `${full("Transfer-Encoding: chunked")}2;${"x".repeat(20_000)}\r\n{}\r\n0\r\n\r\n`;
  const responses = await untilClosed(echo.target, bytes);
  assert.equal(responses.length, 1);
  assert.ok([400, 413].includes(responses[0]?.status ?? 0));
});

test("row 13: a content-length in the trailers is 400", async (t) => {
  const echo = await startEcho(t);
  const size = Buffer.byteLength(CHAT_BODY).toString(16);
  const bytes = `${full("Transfer-Encoding: chunked")}${size}\r\n${CHAT_BODY}\r\n0\r\nContent-Length: 5\r\n\r\n`;
  const responses = await untilClosed(echo.target, bytes);
  assert.deepEqual(
    responses.map((response) => response.status),
    [400],
  );
});

test("row 13: a key in the trailers is ignored", async (t) => {
  const echo = await startEcho(t);
  const size = Buffer.byteLength(CHAT_BODY).toString(16);
  const bytes =
    head(LINE, HOST, JSON_TYPE, "Transfer-Encoding: chunked", "Trailer: x-api-key") +
    `${size}\r\n${CHAT_BODY}\r\n0\r\nx-api-key: ${KEY}\r\n\r\n`;
  const [response] = await exchange(echo.target, bytes);
  assert.equal(response?.status, 401);
  assert.equal(causeOf(response?.body ?? ""), "missing_key");
});

test("row 14: a request after connection: close is never parsed", async (t) => {
  const echo = await startEcho(t);
  const first = request({ headers: [JSON_TYPE, `Content-Length: ${CHAT_BODY.length}`, "Connection: close"] });
  const responses = await untilClosed(echo.target, Buffer.concat([first, request({})]));
  assert.deepEqual(
    responses.map((response) => response.status),
    [200],
  );
  assert.equal(echo.requests.length, 1);
});

test("row 22: headers named like __proto__ are plain headers", async (t) => {
  const echo = await startEcho(t);
  const own = [JSON_TYPE, `Content-Length: ${CHAT_BODY.length}`, "__proto__: x", "constructor: x"];
  const [response] = await exchange(echo.target, request({ headers: own }));
  assert.equal(response?.status, 200);
  assert.equal(echo.requests[0]?.headers.get("__proto__"), "x");
  assert.equal(echo.requests[0]?.headers.get("constructor"), "x");
  assert.equal(echo.requests[0]?.headers.get("toString"), undefined);
});

test("row 24: Connection: x-api-key does not remove the key", async (t) => {
  const echo = await startEcho(t);
  const own = [JSON_TYPE, `Content-Length: ${CHAT_BODY.length}`, "Connection: x-api-key", `x-api-key: ${KEY}`];
  const [response] = await exchange(echo.target, request({ key: undefined, headers: own }));
  assert.equal(response?.status, 200);
  assert.equal(echo.requests[0]?.headers.has("x-api-key"), false);
});

test("a request that arrives byte by byte is read like any other", async (t) => {
  const echo = await startEcho(t);
  const client = new RawSocket(echo.target);
  for (const byte of request({})) client.send(Uint8Array.of(byte));
  const [response] = await client.responses(1);
  client.close();
  assert.equal(response?.status, 200);
});
