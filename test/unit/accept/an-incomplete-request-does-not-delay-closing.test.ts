/**
 * docs/failure-model.md row D5, while the listener closes: an incomplete request is cut at the same time limit as
 * otherwise.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { exchange, RawSocket, type Target } from "../../rig/raw-socket.ts";
import { FakeClock } from "../dispatch/rig.ts";
import { echo as answer, causeOf, request, startEcho } from "./echo.ts";

const LIMITS = { headersTimeoutMs: 10_000, requestTimeoutMs: 60_000, checkingIntervalMs: 1_000, lingerMs: 50 };

/** A visit to the site on another connection: once it is answered, all that was sent before it has been parsed. */
async function roundTrip(target: Target): Promise<void> {
  await exchange(target, request({ line: "GET / HTTP/1.1", headers: [], body: "" }));
}

/** A client that has sent these bytes to a listener that has begun to close. */
async function closingOn(t: test.TestContext, bytes: string | Buffer) {
  const clock = new FakeClock();
  const echo = await startEcho(t, { clock, limits: LIMITS });
  const client = new RawSocket(echo.target);
  t.after(() => client.close());
  await once(client.socket, "connect");
  client.send(bytes);
  await roundTrip(echo.target);
  return { clock, echo, client, closed: echo.listener.close() };
}

const HALVES = [
  ["half a head", "POST /v1/messages HTTP/1.1\r\nHo", LIMITS.headersTimeoutMs],
  [
    "half a body, whose limit counts from its head,",
    request({ headers: ["Content-Type: application/json", "Content-Length: 10"], body: "{" }),
    LIMITS.requestTimeoutMs,
  ],
] as const;

for (const [what, bytes, limitMs] of HALVES) {
  test(`row D5: ${what} delays closing no longer than its time limit`, async (t) => {
    const { clock, client, closed } = await closingOn(t, bytes);
    clock.advance(limitMs - 1);
    assert.equal(client.text, "");
    clock.advance(LIMITS.checkingIntervalMs);
    const [response] = await client.responsesUntilClosed();
    assert.equal(response?.status, 408);
    assert.equal(causeOf(response.body), "request_timeout");
    await closed;
  });
}

test("closing waits for a complete request, however long its answer takes", async (t) => {
  const clock = new FakeClock();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const echo = await startEcho(t, { clock, limits: LIMITS }, async (accepted, reply) => {
    start();
    await released;
    return answer(accepted, reply);
  });
  const client = new RawSocket(echo.target).send(request({}));
  await started;
  await roundTrip(echo.target);
  const closed = echo.listener.close();
  clock.advance(10 * LIMITS.requestTimeoutMs);
  release();
  const [response] = await client.responsesUntilClosed();
  assert.equal(response?.status, 200);
  await closed;
});

test("a stream that was open before the close ends its connection, although its head says keep-alive", async (t) => {
  const opened = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  // Idle connections are kept forever.
  const limits = { ...LIMITS, keepAliveTimeoutMs: 0 };
  const echo = await startEcho(t, { clock: new FakeClock(), limits }, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, {});
    reply.write(Buffer.from("data: 1\n\n"));
    opened.resolve();
    await released.promise;
    reply.end();
  });
  const client = new RawSocket(echo.target).send(request({}));
  await opened.promise;
  const closed = echo.listener.close();
  released.resolve();
  const [response] = await client.responsesUntilClosed();
  assert.deepEqual([response?.headers.connection, response?.complete], ["keep-alive", true]);
  await closed;
});
