/**
 * docs/failure-model.md rows C3 and D4, invariant 25: data, then one end or error, and a slow reader pauses the
 * upstream.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import type { ReplyFault } from "../../../src/dispatch/ask.ts";
import { BUFFERED_BYTES_MAX } from "../../../src/dispatch/upstream/handed-body.ts";
import {
  acceptAll,
  ask,
  assertAnswered,
  chunked,
  closing,
  FakeClock,
  rawServer,
  readRest,
  refusalIn,
  rig,
  route,
  SSE_HEAD,
  settled,
  timeouts,
  upstream,
} from "./rig.ts";

const OPEN = `${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: first\n\n")}`;

test("a stream arrives complete however late it is consumed, with any number of pauses", async (t) => {
  const parts = Array.from({ length: 500 }, (_, at) => `data: ${at} ${"x".repeat(at)}\n\n`);
  const base = await rawServer(t, ({ socket }) => {
    socket.write(OPEN + parts.map(chunked).join(""));
    socket.write("0\r\n\r\n");
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  const { body } = result;
  let text = "";
  let paused = false;
  let inPause = 0;
  const ended = Promise.withResolvers<void>();
  body?.consume({
    data: (chunk) => {
      // Data delivered during a pause was already buffered when the upstream ended.
      if (paused) inPause += chunk.length;
      text += Buffer.from(chunk).toString();
      paused = true;
      body.pause();
      setImmediate(() => {
        paused = false;
        body.resume();
      });
    },
    end: () => ended.resolve(),
    error: (fault) => ended.reject(new Error(fault.reason)),
  });
  await ended.promise;
  assert.ok(inPause <= 2 * BUFFERED_BYTES_MAX, `${inPause} bytes`);
  assert.equal(`${result.token.chunks}${text}`, `data: first\n\n${parts.join("")}`);
});

test("D4: a reader that does not read pauses the upstream, and loses nothing", async (t) => {
  const sizeBytes = 64 * 1024 * 1024;
  const piece = Buffer.alloc(64 * 1024, 0x61);
  let sentBytes = 0;
  const stalled = Promise.withResolvers<void>();
  const base = await rawServer(t, ({ socket }) => {
    const pump = () => {
      while (sentBytes < sizeBytes) {
        sentBytes += piece.length;
        if (!socket.write(piece)) {
          socket.once("drain", pump);
          stalled.resolve();
          return;
        }
      }
      socket.end();
    };
    socket.write(`${SSE_HEAD}connection: close\r\n\r\n`, pump);
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  await stalled.promise;
  // Without a reader: after many turns of the event loop only one buffer and one socket read are held, even if more was
  // sent.
  for (let turn = 0; turn < 2_000; turn++) await new Promise((resolve) => setImmediate(resolve));
  const held = result.body?.bytesReceived ?? 0;
  assert.ok(held <= BUFFERED_BYTES_MAX + 3 * 64 * 1024, `${held} bytes held`);
  assert.ok(sentBytes < sizeBytes);
  const rest = await readRest(result);
  assert.equal(rest.fault, undefined);
  assert.equal(rest.text.length, sizeBytes);
});

test("C3: a reset in the middle of the body is one error, after all data received", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(OPEN);
    asked.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  (await asked.promise).resetAndDestroy();
  const rest = await readRest(result);
  assert.equal(rest.text, "data: first\n\n");
  assert.equal(rest.fault?.cause, "upstream_unavailable");
});

test("C3: the end of an upstream is reported at once after the data, also to a paused reader", async (t) => {
  const base = await rawServer(t, ({ socket }) => {
    socket.write(OPEN);
    socket.write(chunked("data: second\n\n"), () => socket.destroy());
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  const { body } = result;
  // A firm pause that has ended does not make later pauses firm.
  body?.pause(true);
  body?.resume();
  body?.pause();
  const heard: (string | ReplyFault)[] = [];
  const over = Promise.withResolvers<void>();
  body?.consume({
    data: (chunk) => heard.push(Buffer.from(chunk).toString()),
    end: () => over.reject(new Error("a cut body ended cleanly")),
    error: (fault) => {
      heard.push(fault.cause);
      over.resolve();
    },
  });
  await over.promise;
  assert.equal(result.token.chunks.join("") + heard.join(""), "data: first\n\ndata: second\n\nupstream_unavailable");
});

test("a firm pause holds everything back until the reader resumes, also after the end of the upstream", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(OPEN);
    asked.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  const { body } = result;
  body?.pause(true);
  const heard: string[] = [];
  const over = Promise.withResolvers<void>();
  body?.consume({
    data: (chunk) => heard.push(Buffer.from(chunk).toString()),
    end: () => over.resolve(),
    error: ({ cause }) => over.reject(new Error(cause)),
  });
  (await asked.promise).write(`${chunked("data: second\n\n")}0\r\n\r\n`);
  while (dispatcher.inFlight().get("east") !== 0) await settled();
  await settled();
  assert.deepEqual(heard, []);
  body?.resume();
  await over.promise;
  assert.equal(result.token.chunks.join("") + heard.join(""), "data: first\n\ndata: second\n\n");
});

test("C3: silence inside the body is upstream_timeout, but not while the reader pauses", async (t) => {
  const clock = new FakeClock();
  const asked = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(OPEN);
    asked.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base, timeouts({ idleMs: 100 }))], clock);
  const result = await dispatcher.run(ask([route("east")], { deadlineMs: 100_000 }));
  assertAnswered(result);
  const { body } = result;
  const heard: string[] = [];
  body?.consume({
    data: (chunk) => heard.push(`${chunk.length}`),
    end: () => heard.push("end"),
    error: (fault) => heard.push(fault.cause),
  });
  clock.advance(99);
  assert.deepEqual(heard, []);
  const socket = await asked.promise;
  // Fills the buffer, so that the pause reaches the upstream.
  body?.pause();
  const before = body?.bytesReceived ?? 0;
  socket.write(chunked("x".repeat(BUFFERED_BYTES_MAX)));
  while ((body?.bytesReceived ?? 0) < before + BUFFERED_BYTES_MAX) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (let at = 0; at < 5; at++) clock.advance(100);
  assert.deepEqual(heard, []);
  clock.advance(99);
  body?.resume();
  heard.length = 0;
  clock.advance(1);
  assert.deepEqual(heard, [], "the idle timer restarts when reading resumes");
  clock.advance(100);
  clock.advance(100);
  assert.deepEqual(heard, ["upstream_timeout"]);
  await closing(socket);
  assert.equal(clock.pending, 0);
});

test("C3: silence is counted from the last byte, not from the last check", async (t) => {
  const clock = new FakeClock();
  const asked = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(OPEN);
    asked.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base, timeouts({ idleMs: 100 }))], clock);
  const result = await dispatcher.run(ask([route("east")], { deadlineMs: 100_000 }));
  assertAnswered(result);
  const heard: string[] = [];
  const arrived = Promise.withResolvers<void>();
  result.body?.consume({ data: () => arrived.resolve(), end() {}, error: ({ cause }) => heard.push(cause) });
  clock.advance(40);
  (await asked.promise).write(chunked("x"));
  await arrived.promise;
  clock.advance(60);
  assert.deepEqual(heard, [], "40 ms of the first 100 were not silent");
  clock.advance(39);
  assert.deepEqual(heard, []);
  clock.advance(1);
  assert.deepEqual(heard, ["upstream_timeout"]);
});

test("the deadline ends a stream that has been handed over", async (t) => {
  const clock = new FakeClock();
  const base = await rawServer(t, ({ socket }) => socket.write(OPEN));
  const { dispatcher } = rig(t, [upstream("east", base)], clock);
  const result = await dispatcher.run(ask([route("east")], { deadlineMs: 5_000 }));
  assertAnswered(result);
  const rest = readRest(result);
  clock.advance(4_000);
  assert.equal((await rest).fault?.reason, "the request's time is over");
  assert.equal(clock.pending, 0);
});

test("the inspector sees a stream byte by byte until it accepts, and the end of an empty stream", async (t) => {
  const base = await rawServer(t, ({ socket }) => {
    socket.write(`${SSE_HEAD}connection: close\r\n\r\n`);
    const bytes = [..."data: x\n\n"];
    const next = () => {
      const byte = bytes.shift();
      if (byte === undefined) socket.end();
      else socket.write(byte, () => setImmediate(next));
    };
    next();
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(
    ask([route("east")], {
      inspector: {
        ...acceptAll,
        chunk: (seen, bytes) => {
          seen.chunks.push(Buffer.from(bytes));
          return Buffer.concat(seen.chunks).includes("x") ? "accept" : "more";
        },
      },
    }),
  );
  assertAnswered(result);
  assert.equal((await readRest(result)).text, "data: x\n\n");
  const empty = await rawServer(t, ({ socket }) => socket.end(`${SSE_HEAD}content-length: 0\r\n\r\n`));
  const other = rig(t, [upstream("east", empty)]);
  assert.equal(refusalIn(await other.dispatcher.run(ask([route("east")]))).cause, "upstream_invalid");
});

test("a stream that its inspector accepts at the very end is an empty body that ends", async (t) => {
  const base = await rawServer(t, ({ socket }) => socket.end(`${SSE_HEAD}content-length: 5\r\n\r\n: hi\n`));
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const inspector = { chunk: () => "more" as const, end: () => "accept" as const, whole: () => "accept" as const };
  const result = await dispatcher.run(ask([route("east")], { inspector }));
  assertAnswered(result);
  assert.deepEqual(await readRest(result), { text: "", fault: undefined });
});
