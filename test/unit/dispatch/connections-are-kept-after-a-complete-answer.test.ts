/** A stream that reached its terminal frame leaves its connection to the next request; one that continues does not. */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { ask, assertAnswered, FakeClock, rig, route, upstream } from "./rig.ts";

async function server(t: test.TestContext, serve: (res: ServerResponse) => void) {
  const sockets = new Set<unknown>();
  const closed: (() => void)[] = [];
  const http = createServer((req, res) => {
    sockets.add(req.socket);
    req.resume();
    res.on("close", () => closed.splice(0).forEach((wake) => void wake()));
    res.writeHead(200, { "content-type": "text/event-stream" });
    serve(res);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  const base = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`;
  return { base, sockets, nextClose: () => new Promise<void>((resolve) => closed.push(resolve)) };
}

test("twenty streams in a row use one connection", async (t) => {
  const { base, sockets } = await server(t, (res) => {
    res.write("data: 1\n\n");
    // The end follows the terminal frame, in a segment of its own.
    setImmediate(() => res.end("data: [DONE]\n\n"));
  });
  const { dispatcher } = rig(t, [upstream("east", base, { maxConcurrency: 1 })]);
  for (let n = 0; n < 20; n++) {
    const answered = await dispatcher.run(ask([route("east")], { stream: true }));
    assertAnswered(answered);
    const { body } = answered;
    assert.ok(body);
    await new Promise<void>((resolve) => body.consume({ data: () => resolve(), end: resolve, error: () => resolve() }));
    body.discardRest();
  }
  assert.equal(sockets.size, 1);
});

test("an upstream that keeps sending after the terminal frame is cut off", async (t) => {
  let bytes = 0;
  const { base, nextClose } = await server(t, (res) => {
    res.write("data: 1\n\n");
    const piece = Buffer.alloc(16_384);
    const more = () => {
      do bytes += piece.length;
      while (!res.destroyed && res.write(piece));
      if (!res.destroyed) res.once("drain", more);
    };
    setImmediate(more);
  });
  // No time passes, so that only the amount can end it.
  const { dispatcher } = rig(t, [upstream("east", base)], new FakeClock());
  const answered = await dispatcher.run(ask([route("east")], { stream: true }));
  assertAnswered(answered);
  const closed = nextClose();
  answered.body?.consume({ data() {}, end() {}, error() {} });
  answered.body?.discardRest();
  await closed;
  // Besides the 64 KiB that may be read, this is what the sockets hold.
  assert.ok(bytes < 16 * 1024 * 1024, `${bytes} bytes`);
});

test("an upstream that neither sends nor ends its body after the terminal frame is cut off after a second", async (t) => {
  const { base, nextClose } = await server(t, (res) => res.write("data: 1\n\n"));
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("east", base)], clock);
  const answered = await dispatcher.run(ask([route("east")], { stream: true }));
  assertAnswered(answered);
  const closed = nextClose();
  answered.body?.consume({ data() {}, end() {}, error() {} });
  answered.body?.discardRest();
  clock.advance(1_000);
  await closed;
});
