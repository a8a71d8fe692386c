/**
 * ARCHITECTURE.md promise 12, docs/failure-model.md row A6: connections that are accepted between the deadline of a drain and
 * the close of the listening socket do not delay the end, even if their clients send half a request. The clients are in a
 * thread, and connect while this one is blocked.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { startEcho } from "./echo.ts";

const CLIENTS = 5;
/** Connects, sends half a head, counts that in `shared`, and reports how many connections were closed. */
const THREAD = `
  const { connect } = require("node:net");
  const { parentPort, workerData: { port, shared, clients } } = require("node:worker_threads");
  const ends = Array.from({ length: clients }, () => new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.resume();
    socket.on("error", () => {});
    socket.on("close", resolve);
    socket.write("POST /v1/messages HTTP/1.1\\r\\nhost: a\\r\\n", () => {
      Atomics.add(shared, 0, 1);
      Atomics.notify(shared, 0);
    });
  }));
  Promise.all(ends).then(({ length }) => parentPort.postMessage(length));
`;

test("a listener that was destroyed while it accepts waiting connections closes these, too", async (t) => {
  const echo = await startEcho(t, { limits: { headersTimeoutMs: 3_600_000 } });
  assert.ok("port" in echo.target);
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(THREAD, { eval: true, workerData: { port: echo.target.port, shared, clients: CLIENTS } });
  t.after(() => thread.terminate());
  const ends = once(thread, "message");
  for (let sent = 0; sent < CLIENTS; sent = Atomics.load(shared, 0)) Atomics.wait(shared, 0, sent);
  const closed = echo.listener.close();
  echo.listener.destroy();
  await closed;
  assert.deepEqual(await ends, [CLIENTS]);
});
