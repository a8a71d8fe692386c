/** A connection that is never idle would keep an address that its server's name no longer has. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ask, assertAnswered, FakeClock, listening, readRest, rig, route, upstream } from "./rig.ts";

const AGE_MS_MAX = 600_000;
const LONG_MS = 10 * AGE_MS_MAX;
const TIMEOUTS = { connectMs: 5_000, firstByteMs: LONG_MS, wholeMs: LONG_MS, idleMs: LONG_MS, totalMs: LONG_MS };

/** A server that answers at once, except streams: those wait for the test. */
async function scene(t: test.TestContext, maxConcurrency = 1) {
  const sockets: Socket[] = [];
  const streams: ServerResponse[] = [];
  // The server closes no idle connection itself.
  const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
    if (!sockets.includes(request.socket)) sockets.push(request.socket);
    request.resume();
    if (request.headers.accept !== "text/event-stream") {
      response.setHeader("content-type", "application/json").end("{}");
      return;
    }
    response.setHeader("content-type", "text/event-stream").write("data: 1\n\n");
    streams.push(response);
  });
  const clock = new FakeClock();
  const east = upstream("east", await listening(t, server), { maxConcurrency, timeouts: TIMEOUTS });
  const { dispatcher } = rig(t, [east], clock);
  const run = async (stream = false) => {
    const deadlineMs = clock.monotonicMs() + LONG_MS;
    const result = await dispatcher.run(ask([route("east")], { stream, deadlineMs }));
    assertAnswered(result);
    return result;
  };
  return { clock, dispatcher, run, sockets, streams };
}

test("after ten minutes the next request opens a new connection, and the old one is closed", async (t) => {
  const { clock, run, sockets } = await scene(t);
  await run();
  clock.advance(AGE_MS_MAX - 1);
  await run();
  assert.equal(sockets.length, 1);
  const closed = once(sockets[0] as Socket, "close");
  clock.advance(1);
  await run();
  assert.equal(sockets.length, 2);
  await closed;
  clock.advance(AGE_MS_MAX - 1);
  await run();
  assert.equal(sockets.length, 2);
});

test("a stream on an old connection ends undisturbed, and the end of the gateway waits for it", async (t) => {
  const { clock, dispatcher, run, sockets, streams } = await scene(t, 2);
  const stream = await run(true);
  await run();
  assert.equal(sockets.length, 2);
  clock.advance(AGE_MS_MAX);
  await run();
  assert.equal(sockets.length, 3);
  let isClosed = false;
  const closing = dispatcher.close().then(() => {
    isClosed = true;
  });
  await once(sockets[2] as Socket, "close");
  assert.equal(isClosed, false);
  streams[0]?.end("data: 2\n\n");
  assert.deepEqual(await readRest(stream), { text: "data: 1\n\ndata: 2\n\n", fault: undefined });
  await closing;
});

test("a gateway that has closed its connections opens no new ones, however late a request comes", async (t) => {
  const { clock, dispatcher, run, sockets } = await scene(t);
  await run();
  await dispatcher.close();
  clock.advance(AGE_MS_MAX);
  await assert.rejects(run(), /not answered/);
  assert.equal(sockets.length, 1);
});
