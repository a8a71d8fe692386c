/** docs/failure-model.md rows D1 and D2: a client that disconnects stops the upstream in the same tick. */
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import test from "node:test";
import { createDispatcher } from "../../../src/dispatch/dispatcher.ts";
import {
  ask,
  assertAnswered,
  byName,
  chunked,
  closing,
  FakeClock,
  HEALTH,
  heldServer,
  listening,
  rawServer,
  refusalIn,
  rig,
  route,
  SSE_HEAD,
  upstream,
} from "./rig.ts";

test("D1: disconnect while waiting for an answer: the upstream's connection closes and no other is tried", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const silent = await rawServer(t, ({ socket }) => asked.resolve(socket));
  const { dispatcher } = rig(t, [upstream("east", silent), upstream("west", silent)]);
  const client = new AbortController();
  const running = dispatcher.run(ask([route("east"), route("west", { priority: 1 })], { signal: client.signal }));
  const closed = closing(await asked.promise);
  client.abort();
  assert.deepEqual([...dispatcher.inFlight().values()], [0, 0]);
  const result = await running;
  assert.ok(!result.answered && result.clientGone);
  assert.deepEqual(
    result.attempts.map(({ outcome, sentToUpstream }) => [outcome, sentToUpstream]),
    [["client_gone", true]],
  );
  await closed;
});

test("D1: disconnect while connecting: the request is never written", async (t) => {
  let written = 0;
  const connected = Promise.withResolvers<Socket>();
  const server = createServer((socket) => {
    socket.on("data", (chunk) => {
      written += chunk.length;
    });
    socket.on("error", () => {});
    connected.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", await listening(t, server))]);
  const client = new AbortController();
  const running = dispatcher.run(ask([route("east")], { signal: client.signal }));
  client.abort();
  const result = await running;
  assert.ok(!result.answered && result.clientGone);
  assert.equal(result.attempts[0]?.sentToUpstream, false);
  const socket = await connected.promise;
  if (!socket.closed) {
    const closed = closing(socket);
    await dispatcher.close();
    await closed;
  }
  assert.equal(written, 0);
});

test("a client that disconnects before the start costs no attempt", async (t) => {
  const { dispatcher } = rig(t, [upstream("east", "http://127.0.0.1:9/v1")]);
  const result = await dispatcher.run(ask([route("east")], { signal: AbortSignal.abort() }));
  assert.ok(!result.answered && result.clientGone);
  assert.equal(result.attempts.length, 0);
});

test("D2: an abort after the hand-over destroys the connection, and the sink gets nothing more", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(`${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: a\n\n")}`);
    asked.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")]));
  assertAnswered(result);
  const heard: string[] = [];
  result.body?.consume({
    data: () => heard.push("data"),
    end: () => heard.push("end"),
    error: () => heard.push("error"),
  });
  const socket = await asked.promise;
  const closed = closing(socket);
  socket.write(chunked("data: b\n\n"));
  result.body?.abort();
  assert.deepEqual([...dispatcher.inFlight()], [["east", 0]]);
  await closed;
  assert.deepEqual(heard, []);
});

test("an inspector that throws is a defect: run rejects and the upstream's connection is closed", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const base = await rawServer(t, ({ socket }) => {
    socket.write(`${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: a\n\n")}`);
    asked.resolve(socket);
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const defect = new Error("defect");
  const inspector = {
    chunk: () => {
      throw defect;
    },
    end: () => "accept" as const,
    whole: () => "accept" as const,
  };
  await assert.rejects(dispatcher.run(ask([route("east")], { inspector })), defect);
  assert.deepEqual([...dispatcher.inFlight()], [["east", 0]]);
  const socket = await asked.promise;
  await closing(socket);
});

test("D1: disconnect while a long request is being written to a server that does not read", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.pause();
      asked.resolve(socket);
    });
  });
  const { dispatcher } = rig(t, [upstream("east", await listening(t, server))]);
  const client = new AbortController();
  const body = Buffer.alloc(16 * 1024 * 1024, 0x20);
  const encodeFor = () => ({ body, token: { chunks: [], model: "" } });
  const running = dispatcher.run(ask([route("east")], { signal: client.signal, encodeFor }));
  const socket = await asked.promise;
  const closed = closing(socket);
  client.abort();
  const result = await running;
  assert.ok(!result.answered && result.clientGone);
  assert.deepEqual([...dispatcher.inFlight()], [["east", 0]]);
  socket.resume();
  await closed;
});

test("a client that disconnects in the turn in which its request becomes the probe leaves the probe to the next one", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const client = new AbortController();
  const returned: string[] = [];
  const settings = upstream("east", east.base, {
    ...{ maxConcurrency: 1, queue: { max: 3, waitMs: 60_000 } },
    health: { ...HEALTH, failures: 1, coolDownMs: 4_000 },
  });
  const dispatcher = createDispatcher({
    ...{ upstreams: byName([settings]), clock, random: () => 0.5, onWarning() {} },
    // Between getting its slot and its first step.
    onWaited: () => client.abort(),
    onReturned: (name) => returned.push(name),
  });
  t.after(() => dispatcher.close());
  const run = (more = {}) =>
    dispatcher.run(
      ask([route("east")], {
        ...{ stream: false, deadlineMs: 1_000_000, owner: { account: "a", key: "a1" }, ...more },
      }),
    );
  const health = () => dispatcher.report()[0]?.health;
  const failing = run();
  // There is no other route, so the ejected upstream is used, and that is no probe.
  for (let at = 0; at < 2; at++) (await east.next()).answer(500);
  refusalIn(await failing);
  const asked = run();
  const held = await east.next();
  clock.advance(4_000);
  const waiting = run({ signal: client.signal });
  assert.deepEqual([health(), dispatcher.report()[0]?.queued], ["probe", 1]);
  held.answer();
  assertAnswered(await asked);
  const left = await waiting;
  assert.ok(!left.answered && left.clientGone);
  assert.deepEqual([left.attempts.length, health(), dispatcher.inFlight().get("east")], [0, "probe", 0]);
  const probing = run();
  const probe = await east.next();
  assert.equal(health(), "ejected");
  probe.answer();
  assertAnswered(await probing);
  assert.deepEqual([health(), returned], ["healthy", ["east"]]);
});
