/**
 * docs/failure-model.md row A6: before an immediate stop closes all connections it waits for the answers to the requests that have arrived, for a limited time. It
 * waits neither for the rest of a request nor for a client that does not send one.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { RawSocket } from "../../rig/raw-socket.ts";
import { request, startEcho } from "./echo.ts";

const LONG_MS = 3_600_000;

test("an answer that is given during the wait is sent, and closes its connection", async (t) => {
  const come = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (_request, reply) => {
    come.resolve();
    await answer.promise;
    reply.whole(200, {}, Buffer.from("the answer"));
  });
  const client = new RawSocket(echo.target);
  client.send(request({}));
  await come.promise;
  const answered = echo.listener.answered(LONG_MS);
  answer.resolve();
  await answered;
  echo.listener.destroy();
  await client.closed;
  const { text } = client;
  assert.match(text, /^connection: close\r$/im);
  assert.ok(text.endsWith("the answer"));
});

test("an answer that has begun before its request was complete is sent", async (t) => {
  const come = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (_request, reply) => {
    reply.open(200, {});
    come.resolve();
    await answer.promise;
    reply.end(Buffer.from("the answer"));
  });
  const client = new RawSocket(echo.target);
  client.send(request({}).subarray(0, -5));
  await come.promise;
  const answered = echo.listener.answered(LONG_MS).then(() => "over");
  assert.equal(await Promise.race([answered, new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
  answer.resolve();
  await answered;
  echo.listener.destroy();
  await client.closed;
  assert.match(client.text, /the answer/);
});

test("an answer that does not come ends the wait after its time", async (t) => {
  const come = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (asked) => {
    // Only a complete request is waited for.
    await asked.readBody();
    come.resolve();
    return new Promise(() => {});
  });
  const client = new RawSocket(echo.target);
  client.send(request({}));
  await come.promise;
  await echo.listener.answered(1);
  echo.listener.destroy();
  await client.closed;
  assert.equal(client.text, "");
});

test("a request whose body is incomplete, half a head and an idle connection are not waited for", async (t) => {
  const come = Promise.withResolvers<void>();
  const echo = await startEcho(t, {}, async (asked) => {
    come.resolve();
    await asked.readBody();
  });
  const clients = [new RawSocket(echo.target), new RawSocket(echo.target), new RawSocket(echo.target)];
  clients[0]?.send(request({}).subarray(0, -5));
  clients[1]?.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\n");
  await come.promise;
  await echo.listener.answered(LONG_MS);
});
