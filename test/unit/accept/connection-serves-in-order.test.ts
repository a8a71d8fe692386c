/**
 * docs/failure-model.md rows 9, 19 to 21, D5, D6 and D8: one connection, its requests in order, slow senders and
 * connection limits.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import type { AcceptedRequest } from "../../../src/accept/listener.ts";
import type { Reply } from "../../../src/accept/reply.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { exchange, RawSocket, type Target, untilClosed } from "../../rig/raw-socket.ts";
import { echo as answer, causeOf, refuse, request, startEcho } from "./echo.ts";

const JSON_TYPE = "Content-Type: application/json";

/** A visit to the site on another connection: once it is answered, all that was sent before it has been parsed. */
async function roundTrip(target: Target): Promise<void> {
  await exchange(target, request({ line: "GET / HTTP/1.1", headers: [], body: "" }));
}

/** What the pipeline does with an invalid key: it answers without reading the body. */
function refuseKey(accepted: AcceptedRequest, reply: Reply): void {
  assert.ok(isRefusal(accepted.key));
  refuse(accepted.key, accepted.protocol, reply);
}

const QUICK = { headersTimeoutMs: 200, requestTimeoutMs: 200, checkingIntervalMs: 20, lingerMs: 50 };

test("row 20: of three pipelined requests with a bad second one, the third is never executed", async (t) => {
  const echo = await startEcho(t);
  const bad = "GET /v1/models HTTP/1.1\r\nbad header\r\n\r\n";
  const responses = await untilClosed(echo.target, Buffer.concat([request({}), Buffer.from(bad), request({})]));
  assert.deepEqual(
    responses.map((response) => response.status),
    [200, 400],
  );
  assert.equal(echo.requests.length, 1);
});

test("row D6: a request after a running one waits for its turn", async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    start();
    await released;
    return answer(accepted, reply);
  });
  const client = new RawSocket(echo.target).send(Buffer.concat([request({}), request({}), request({})]));
  await started;
  await roundTrip(echo.target);
  const seenWhileRunning = echo.requests.length;
  release();
  const responses = await client.responses(3);
  client.close();
  assert.equal(seenWhileRunning, 1);
  assert.deepEqual(
    responses.map((response) => response.status),
    [200, 200, 200],
  );
});

test("row D6: more than a few waiting requests are refused", async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const echo = await startEcho(t, { limits: { pipelinedMax: 2 } }, async (accepted, reply) => {
    start();
    await released;
    return answer(accepted, reply);
  });
  const client = new RawSocket(echo.target).send(Buffer.concat(Array.from({ length: 5 }, () => request({}))));
  await started;
  await roundTrip(echo.target);
  release();
  const responses = await client.responsesUntilClosed();
  assert.deepEqual(
    responses.map((response) => response.status),
    [200, 200, 200, 400],
  );
});

for (const [name, send] of [
  ["pipelined", (client: RawSocket) => client.send(...Array.from({ length: 6 }, () => request({})))],
  ["one by one", sendOneByOne],
] as const) {
  test(`row D6: the last request that a connection may carry closes it, and no later one is answered: ${name}`, async (t) => {
    const echo = await startEcho(t, { limits: { requestsPerSocketMax: 3 } });
    const client = new RawSocket(echo.target);
    await send(client);
    const responses = await client.responsesUntilClosed();
    assert.deepEqual(
      responses.map(({ status, headers }) => [status, headers.connection]),
      [
        [200, "keep-alive"],
        [200, "keep-alive"],
        [200, "close"],
      ],
    );
    assert.equal(echo.requests.length, 3);
  });
}

async function sendOneByOne(client: RawSocket): Promise<void> {
  for (let n = 1; n <= 3; n++) await client.send(request({})).responses(n);
}

test("row 19: 100 Continue is sent when the handler reads the body", async (t) => {
  const echo = await startEcho(t);
  const bytes = request({
    headers: ["Content-Type: application/json", "Content-Length: 2", "Expect: 100-continue"],
    body: "",
  });
  const client = new RawSocket(echo.target).send(bytes);
  assert.match(await client.until((text) => text.includes("\r\n\r\n")), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  const [response] = await client.send("{}").responses(1);
  client.close();
  assert.equal(causeOf(response?.body ?? ""), "missing_field");
});

test("row 19: 100 Continue is not sent for a body that is too large", async (t) => {
  const echo = await startEcho(t);
  const bytes = request({
    headers: ["Content-Type: application/json", "Content-Length: 999999", "Expect: 100-continue"],
    body: "",
  });
  const client = new RawSocket(echo.target).send(bytes);
  const [response] = await client.responsesUntilClosed();
  assert.equal(response?.status, 413);
  assert.doesNotMatch(client.text, /100 Continue/);
});

test("row 19: a client that sends its body without waiting for 100 Continue is not cut off after the refusal", async (t) => {
  const echo = await startEcho(t, { bodyBytesMax: 1_000_000, limits: { lingerMs: 60_000 } }, refuseKey);
  for (const bytes of [1_000, 200_000]) {
    const headers = [JSON_TYPE, `Content-Length: ${bytes}`, "Expect: 100-continue"];
    const client = new RawSocket(echo.target).send(request({ key: "sk-bad", headers, body: "" }));
    const responses = await client.responses(1);
    assert.deepEqual(
      responses.map((response) => [response.status, response.headers.connection]),
      [[401, "close"]],
    );
    await roundTrip(echo.target);
    assert.equal(client.socket.readableEnded, false, "the server still reads");
    const errors: Error[] = [];
    client.socket.on("error", (error) => errors.push(error));
    await client.send(Buffer.alloc(bytes, 0x20)).closed;
    assert.deepEqual(errors, []);
    assert.doesNotMatch(client.text, /100 Continue/);
  }
});

test("row 21: slow headers are 408 and closed", async (t) => {
  const echo = await startEcho(t, { limits: QUICK });
  const [response] = await untilClosed(echo.target, "POST /v1/messages HTTP/1.1\r\nHo");
  assert.equal(response?.status, 408);
  assert.equal(causeOf(response.body), "request_timeout");
});

test("row 21: a connection that sends nothing is closed", async (t) => {
  const echo = await startEcho(t, { limits: QUICK });
  await new RawSocket(echo.target).closed;
});

for (const [name, headers, body] of [
  ["a slow body", ["Content-Length: 10"], "{"],
  ["a slow chunked body", ["Transfer-Encoding: chunked"], "1\r\n{\r\n"],
] as const) {
  test(`row 21: ${name} is 408 and closed`, async (t) => {
    const echo = await startEcho(t, { limits: QUICK });
    const bytes = request({ headers: ["Content-Type: application/json", ...headers], body });
    const responses = await untilClosed(echo.target, bytes);
    assert.deepEqual(
      responses.map((response) => [response.status, causeOf(response.body)]),
      [[408, "request_timeout"]],
    );
  });
}

for (const [name, line, key] of [
  ["whose key is bad", "POST /v1/chat/completions HTTP/1.1", "sk-bad"],
  ["without a key", "POST /v1/chat/completions HTTP/1.1", undefined],
  ["to an address that does not exist", "POST /v1/nowhere HTTP/1.1", undefined],
] as const) {
  test(`row 21: the rest of a small body ${name} is waited for only for a limited time after the answer`, async (t) => {
    // Longer than a busy machine pauses: headers that are late get another answer.
    const limits = { ...QUICK, headersTimeoutMs: 2_000, requestTimeoutMs: 2_000 };
    const echo = await startEcho(t, { limits }, refuseKey);
    const client = new RawSocket(echo.target);
    client.send(request({ line, key, headers: ["Content-Type: application/json", "Content-Length: 10"], body: "{" }));
    const responses = await client.responsesUntilClosed();
    assert.deepEqual(
      responses.map((response) => response.status),
      [key === undefined && line.includes("nowhere") ? 404 : 401],
    );
  });
}

test("an unread body is drained up to a number of bytes, after which its sender has to wait", async (t) => {
  const echo = await startEcho(t, { bodyBytesMax: 1_000, limits: { lingerBytesMax: 100_000, lingerMs: 1_000 } });
  const client = new RawSocket(echo.target).send(
    request({ headers: [JSON_TYPE, "Content-Length: 40000000"], body: "" }),
  );
  const piece = Buffer.alloc(65_536, 0x20);
  while (!client.isClosed && client.socket.bytesWritten < 40_000_000) {
    if (client.socket.write(piece)) continue;
    await Promise.race([once(client.socket, "drain").catch(() => {}), client.closed]);
  }
  const [response] = await client.responsesUntilClosed();
  assert.equal(response?.status, 413);
  // The kernel's buffers take some megabytes, too; without a limit, a second on loopback takes a hundred times as much.
  assert.ok(client.socket.bytesWritten < 20_000_000, String(client.socket.bytesWritten));
});

test("an unread body is drained for a while, so that the client receives the answer", async (t) => {
  const echo = await startEcho(t, { bodyBytesMax: 1_000 });
  const body = Buffer.alloc(3_000_000, 0x20);
  const [response] = await untilClosed(echo.target, request({ body }));
  assert.equal(response?.status, 413);
  assert.equal(response.headers.connection, "close");
});

test("an answer relayed in pieces does not cut off a body that is still being sent, either", async (t) => {
  const limits = { lingerMs: 60_000, lingerBytesMax: 16_000_000 };
  const echo = await startEcho(t, { bodyBytesMax: 10_000_000, limits }, (_, reply) => {
    reply.openRelayed(200, ["content-type", "text/plain"]);
    reply.write(Buffer.from("first, "));
    reply.end(Buffer.from("last"));
  });
  const client = new RawSocket(echo.target);
  const broken: unknown[] = [];
  client.socket.on("error", (error) => broken.push(error));
  client.send(request({ body: Buffer.alloc(8_000_000, 0x20) }));
  const [response] = await client.responsesUntilClosed();
  assert.deepEqual([response?.complete, response?.body, response?.headers.connection], [true, "first, last", "close"]);
  assert.deepEqual(broken, []);
});

test("promise 12: a lame duck still serves, and closes each connection after its answer", async (t) => {
  const echo = await startEcho(t);
  const client = new RawSocket(echo.target).send(request({}));
  const [before] = await client.responses(1);
  echo.listener.lameDuck();
  const [, after] = await client.send(request({})).responsesUntilClosed();
  assert.equal(before?.headers.connection, "keep-alive");
  assert.deepEqual([after?.status, after?.headers.connection], [200, "close"]);
});

test("close waits for a pending answer", async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    start();
    await released;
    return answer(accepted, reply);
  });
  const client = new RawSocket(echo.target).send(request({}));
  await started;
  const closed = echo.listener.close();
  release();
  const [response] = await client.responsesUntilClosed();
  await closed;
  assert.equal(response?.status, 200);
  assert.equal(echo.listener.openConnections, 0);
});

test("row D8: a connection above the limit gets a 503", async (t) => {
  const echo = await startEcho(t, { limits: { connectionsMax: 1, lingerMs: 50 } });
  const first = new RawSocket(echo.target).send(request({}));
  await first.responses(1);
  const [response] = await new RawSocket(echo.target).responsesUntilClosed();
  first.close();
  assert.equal(response?.status, 503);
  assert.equal(causeOf(response.body), "overloaded");
});

test("a reset in the middle of a body affects no other connection", async (t) => {
  const echo = await startEcho(t);
  const client = new RawSocket(echo.target).send(request({ headers: ["Content-Length: 10"], body: "{" }));
  await once(client.socket, "connect");
  client.close(true);
  const [response] = await new RawSocket(echo.target).send(request({})).responses(1);
  assert.equal(response?.status, 200);
  assert.deepEqual(echo.crashes, []);
});

test("row 9: a reset after CONNECT affects no other connection", async (t) => {
  const echo = await startEcho(t);
  const client = new RawSocket(echo.target).send("CONNECT evil:80 HTTP/1.1\r\nHost: evil:80\r\n\r\n");
  await client.until((text) => text.includes("\r\n\r\n"));
  client.send("x".repeat(100_000)).close(true);
  const [response] = await exchange(echo.target, request({}));
  assert.equal(response?.status, 200);
});

test("row 9: CONNECT after a running request does not get that request's answer", async (t) => {
  const { promise: gone, resolve: left } = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (_accepted, reply) => {
    reply.onGone(left);
    await reply.finished;
  });
  const client = new RawSocket(echo.target);
  client.send(Buffer.concat([request({}), Buffer.from("CONNECT evil:80 HTTP/1.1\r\nHost: evil:80\r\n\r\n")]));
  await gone;
  assert.deepEqual(await client.responsesUntilClosed(), []);
});

test("under pressure answers close their connections, and at full pressure new connections get a 503", async (t) => {
  const connectionGuard = { pressure: 0.9, refusals: 0 };
  const echo = await startEcho(t, {
    limits: { lingerMs: 50 },
    connectionGuard: {
      shares: undefined,
      refusesConnections: () => connectionGuard.pressure >= 1,
      closesConnections: () => connectionGuard.pressure >= 0.9,
      refused: () => void connectionGuard.refusals++,
    },
  });
  const [served] = await new RawSocket(echo.target).send(request({})).responsesUntilClosed();
  assert.deepEqual([served?.status, served?.headers.connection], [200, "close"]);
  connectionGuard.pressure = 1;
  const [refused] = await new RawSocket(echo.target).responsesUntilClosed();
  assert.deepEqual([refused?.status, refused?.headers.connection, connectionGuard.refusals], [503, "close", 1]);
  connectionGuard.pressure = 0;
  const [after] = await new RawSocket(echo.target).send(request({})).responses(1);
  assert.deepEqual([after?.status, after?.headers.connection], [200, "keep-alive"]);
});
