/**
 * docs/failure-model.md rows C9, 63 and 71: an upstream that violates HTTP loses its connection, and only its own
 * request fails.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAnswered, type RawRequest, rawServer, refusalIn, rig, route, upstream } from "./rig.ts";

const JSON_TYPE = "content-type: application/json\r\n";
const many = Array.from({ length: 2_000 }, (_, at) => `x-${at}: 1\r\n`).join("");
const over = Array.from({ length: 129 }, (_, at) => `x-${at}: 1\r\n`).join("");

const REFUSED: readonly (readonly [string, string, string])[] = [
  [
    "C9: two content-lengths",
    `HTTP/1.1 200 OK\r\n${JSON_TYPE}content-length: 2\r\ncontent-length: 3\r\n\r\n{} `,
    "invalid",
  ],
  [
    "C9: content-length and transfer-encoding",
    `HTTP/1.1 200 OK\r\n${JSON_TYPE}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    "invalid",
  ],
  ["C9: a bare CR inside a header", `HTTP/1.1 200 OK\r\n${JSON_TYPE}x: a\rb\r\ncontent-length: 2\r\n\r\n{}`, "invalid"],
  ["C9: a header line without a colon", `HTTP/1.1 200 OK\r\nnonsense\r\ncontent-length: 2\r\n\r\n{}`, "invalid"],
  ["C9: a bad chunk size", `HTTP/1.1 200 OK\r\n${JSON_TYPE}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n`, "invalid"],
  ["63: obs-text in a header", `HTTP/1.1 200 OK\r\n${JSON_TYPE}x: caf\xe9\r\ncontent-length: 2\r\n\r\n{}`, "invalid"],
  [
    "63: a control character in a header",
    `HTTP/1.1 200 OK\r\n${JSON_TYPE}x: a\x01b\r\ncontent-length: 2\r\n\r\n{}`,
    "invalid",
  ],
  ["63: DEL in a header", `HTTP/1.1 200 OK\r\n${JSON_TYPE}x: a\x7fb\r\ncontent-length: 2\r\n\r\n{}`, "invalid"],
  ["63: 2,000 headers", `HTTP/1.1 200 OK\r\n${JSON_TYPE}${many}content-length: 2\r\n\r\n{}`, "invalid"],
  ["63: 129 headers", `HTTP/1.1 200 OK\r\n${JSON_TYPE}${over}content-length: 2\r\n\r\n{}`, "invalid"],
  ["63: status 600", `HTTP/1.1 600 Odd\r\n${JSON_TYPE}content-length: 2\r\n\r\n{}`, "invalid"],
  ["63: status 1000", `HTTP/1.1 1000 Odd\r\n${JSON_TYPE}content-length: 2\r\n\r\n{}`, "invalid"],
  ["63: status 99", `HTTP/1.1 99 Odd\r\n${JSON_TYPE}content-length: 2\r\n\r\n{}`, "invalid"],
  [
    "C9: a 101 that was not requested",
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "invalid",
  ],
];

for (const [name, bytes, cause] of REFUSED) {
  test(`${name} is upstream_${cause}, and the next request has a fresh connection`, async (t) => {
    const used: number[] = [];
    const base = await rawServer(t, ({ socket, text, connection }) => {
      used.push(connection);
      socket.write(text.includes('"good"') ? good('{"for":"good"}') : Buffer.from(bytes, "latin1"));
    });
    const { dispatcher } = rig(t, [upstream("east", base)]);
    const bad = await dispatcher.run(ask([route("east", { upstreamModel: "bad" })], { stream: false }));
    assert.equal(refusalIn(bad).cause, `upstream_${cause}`);
    const next = await dispatcher.run(ask([route("east", { upstreamModel: "good" })], { stream: false }));
    assertAnswered(next);
    assert.equal(String(next.token.chunks[0]), '{"for":"good"}');
    assert.ok(!used.slice(0, -1).includes(used.at(-1) as number), `connections used: ${used}`);
  });
}

function good(body: string): string {
  return `HTTP/1.1 200 OK\r\n${JSON_TYPE}content-length: ${body.length}\r\n\r\n${body}`;
}

const POISON = good('{"for":"nobody"}');

const SURPLUS: readonly (readonly [string, (request: RawRequest) => void])[] = [
  ["71: a second response in the same packet", ({ socket }) => socket.write(good('{"for":"first"}') + POISON)],
  ["71: surplus bytes after the body", ({ socket }) => socket.write(`${good('{"for":"first"}')}loose`)],
  [
    "71: bytes after the last chunk",
    ({ socket }) =>
      socket.write(
        `HTTP/1.1 200 OK\r\n${JSON_TYPE}transfer-encoding: chunked\r\n\r\nf\r\n{"for":"first"}\r\n0\r\n\r\n${POISON}`,
      ),
  ],
  [
    "71: a response before the next request",
    ({ socket }) => socket.write(good('{"for":"first"}'), () => setImmediate(() => socket.write(POISON))),
  ],
];

for (const [name, answer] of SURPLUS) {
  test(`${name} destroys the connection and affects no other request`, async (t) => {
    const used: number[] = [];
    const closed = Promise.withResolvers<void>();
    const base = await rawServer(t, (request) => {
      used.push(request.connection);
      if (request.text.includes('"second"')) return void request.socket.write(good('{"for":"second"}'));
      request.socket.on("close", () => closed.resolve());
      answer(request);
    });
    const { dispatcher } = rig(t, [upstream("east", base)]);
    const first = await dispatcher.run(ask([route("east", { upstreamModel: "first" })], { stream: false }));
    assertAnswered(first);
    assert.equal(String(first.token.chunks[0]), '{"for":"first"}');
    await closed.promise;
    const second = await dispatcher.run(ask([route("east", { upstreamModel: "second" })], { stream: false }));
    assertAnswered(second);
    assert.equal(String(second.token.chunks[0]), '{"for":"second"}');
    assert.deepEqual(used, [1, 2]);
  });
}

test("71: a clean connection is reused, one request at a time", async (t) => {
  const used: number[] = [];
  const base = await rawServer(t, ({ socket, connection }) => {
    used.push(connection);
    socket.write(good("{}"));
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  for (let at = 0; at < 3; at++) {
    assertAnswered(await dispatcher.run(ask([route("east")], { stream: false })));
    // undici accepts a connection back one turn after its reply.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  }
  assert.deepEqual(used, [1, 1, 1]);
});

test("C9: an early refusal, before the body is read, is passed on and its connection closed", async (t) => {
  const { createServer } = await import("node:net");
  const { listening } = await import("./rig.ts");
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.pause();
      socket.write(`HTTP/1.1 413 Too Large\r\n${JSON_TYPE}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    });
  });
  const { dispatcher } = rig(t, [upstream("east", await listening(t, server))]);
  const result = await dispatcher.run(
    ask([route("east")], {
      stream: false,
      encodeFor: () => ({ body: Buffer.alloc(8 * 1024 * 1024, 0x20), token: { chunks: [], model: "" } }),
    }),
  );
  const refusal = refusalIn(result);
  assert.equal(refusal.cause, "upstream_rejected");
  assert.equal(refusal.status, 413);
});
