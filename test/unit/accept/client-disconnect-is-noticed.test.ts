import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import type { Reply } from "../../../src/accept/reply.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { request, startEcho } from "./echo.ts";

/** A listener whose handler opens a stream, or waits before the first byte, and reports when the client disconnects. */
async function startStream(t: TestContext, opens: boolean) {
  const { promise: started, resolve: start } = Promise.withResolvers<Reply>();
  const { promise: gone, resolve: left } = Promise.withResolvers<boolean>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.onGone(() => left(accepted.signal.aborted));
    if (opens) {
      reply.open(200, {});
      reply.write(Buffer.from("data: 1\n\n"));
    }
    start(reply);
    await reply.finished;
  });
  return { echo, started, gone };
}

const WAYS: Readonly<Record<string, (client: RawSocket) => void>> = {
  FIN: (client) => client.close(),
  RST: (client) => client.close(true),
  "a half-close": (client) => client.socket.end(),
};

for (const [name, leave] of Object.entries(WAYS)) {
  test(`row D1: ${name} before the first byte`, async (t) => {
    const { echo, started, gone } = await startStream(t, false);
    const client = new RawSocket(echo.target).send(request({}));
    const reply = await started;
    leave(client);
    assert.equal(await gone, true, "the signal is aborted");
    assert.equal(reply.gone, true);
    reply.whole(200, {}, Buffer.from("{}"));
    client.close();
    assert.deepEqual(echo.crashes, []);
  });

  test(`row D2: ${name} in the middle of a stream`, async (t) => {
    const { echo, started, gone } = await startStream(t, true);
    const client = new RawSocket(echo.target).send(request({}));
    const reply = await started;
    await client.until((text) => text.includes("data: 1"));
    leave(client);
    await gone;
    assert.equal(reply.write(Buffer.from("data: 2\n\n")), true, "write does not ask to wait");
    assert.equal(reply.writtenBytes, 9);
    client.close();
    assert.deepEqual(echo.crashes, []);
  });
}

test("a client that has received the whole answer does not count as disconnected", async (t) => {
  const { promise: ended, resolve } = Promise.withResolvers<Reply>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, { "x-a": "1" });
    reply.write(Buffer.from("data: 1\n\n"));
    reply.end(Buffer.from("data: 2\n\n"));
    await reply.finished;
    resolve(reply);
  });
  const client = new RawSocket(echo.target).send(request({}));
  const [response] = await client.responses(1);
  client.close();
  const reply = await ended;
  assert.equal(reply.gone, false);
  assert.equal(reply.writtenBytes, 18);
  assert.equal(response?.body, "data: 1\n\ndata: 2\n\n");
  assert.equal(response.headers["content-type"], "text/event-stream; charset=utf-8");
  assert.equal(response.headers["cache-control"], "no-cache");
  assert.equal(response.headers["x-accel-buffering"], "no");
  assert.equal(response.headers["x-a"], "1");
});

test("row D4: a slow reader causes backpressure, and nothing is lost", async (t) => {
  const piece = Buffer.alloc(65_536, 0x61);
  const pieces = 200;
  let waits = 0;
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, {});
    let drained = () => {};
    reply.onDrain(() => drained());
    for (let i = 0; i < pieces; i += 1) {
      if (reply.write(piece)) continue;
      waits += 1;
      await new Promise<void>((resolve) => {
        drained = resolve;
      });
    }
    reply.end();
  });
  const client = new RawSocket(echo.target);
  client.socket.pause();
  client.send(request({}));
  client.socket.resume();
  const [response] = await client.responses(1);
  client.close();
  assert.ok(waits > 0);
  assert.equal(response?.body.length, piece.length * pieces);
});

test("row D3: a client that takes nothing is cut", async (t) => {
  const { promise: gone, resolve: left } = Promise.withResolvers<void>();
  const echo = await startEcho(t, { limits: { writeStallMs: 100 } }, async (accepted, reply) => {
    await accepted.readBody();
    reply.onGone(left);
    reply.open(200, {});
    const fill = () => {
      while (!reply.gone && reply.write(Buffer.alloc(1_000_000)));
    };
    reply.onDrain(fill);
    fill();
    await reply.finished;
  });
  const client = new RawSocket(echo.target);
  client.socket.pause();
  client.send(request({}));
  await gone;
  client.close();
});
