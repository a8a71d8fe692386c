/**
 * ARCHITECTURE.md promise 12: an answer that was begun before its listener closes could not say `connection: close`. Its connection is closed
 * when it has ended, whenever that is; otherwise a drain waits for the next request of its client.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import test from "node:test";
import type { Reply } from "../../../src/accept/reply.ts";
import { request, startEcho } from "./echo.ts";

/** Less than the 65 seconds for which an idle connection is kept open, and more than the pauses of a busy machine. */
const CLOSED_MS = 40_000;

test("a connection without a request is closed while an answer on another one still runs", async (t) => {
  const streaming = Promise.withResolvers<Reply>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, {});
    reply.write(Buffer.from("begun"));
    if (echo.requests.length === 1) reply.end(Buffer.from("ended"));
    else streaming.resolve(reply);
    await reply.finished;
  });
  assert.ok("port" in echo.target);
  const { port } = echo.target;
  const [idle, other] = [0, 1].map(() => connect(port, "127.0.0.1").setEncoding("utf8")) as [Socket, Socket];
  let received = "";
  idle.on("data", (text: string) => {
    received += text;
    if (received.endsWith("0\r\n\r\n")) other.write(request({}));
  });
  idle.write(request({}));
  const [reply] = await Promise.all([streaming.promise, once(other, "data")]);
  const closed = echo.listener.close();
  await once(idle, "close", { signal: AbortSignal.timeout(CLOSED_MS) });
  assert.equal(reply.ended, false);
  reply.end(Buffer.from("ended"));
  other.resume();
  await closed;
});

test("connections whose answers end one after the other are closed one after the other", async (t) => {
  const opened: Reply[] = [];
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, {});
    reply.write(Buffer.from("begun"));
    opened.push(reply);
    await reply.finished;
  });
  assert.ok("port" in echo.target);
  const { port } = echo.target;
  // The first one may end before the listener closes idle connections by itself.
  const clients = [0, 1, 2].map(() => connect(port, "127.0.0.1").setEncoding("utf8"));
  for (const client of clients) {
    client.write(request({}));
    await once(client, "data");
  }
  const closed = echo.listener.close();
  for (const [at, client] of clients.entries()) {
    client.resume();
    opened[at]?.end(Buffer.from("ended"));
    await once(client, "close", { signal: AbortSignal.timeout(CLOSED_MS) });
  }
  await closed;
});
