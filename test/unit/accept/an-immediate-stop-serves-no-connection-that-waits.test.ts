/**
 * An immediate stop cuts every connection. It serves none that the process has not accepted yet, and does not wait for any. The client
 * is in a thread, and connects while this one is blocked.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { request, startEcho } from "./echo.ts";

/** Connects and sends a request, tells in `shared` when it has, and reports what it received. */
const THREAD = `
  const { connect } = require("node:net");
  const { parentPort, workerData: { port, bytes, shared } } = require("node:worker_threads");
  let text = "";
  const socket = connect(port, "127.0.0.1");
  socket.on("data", (piece) => { text += piece; });
  socket.on("error", () => {});
  socket.on("close", () => parentPort.postMessage(text));
  socket.write(bytes, () => { Atomics.store(shared, 0, 1); Atomics.notify(shared, 0); });
`;

test("a request on a connection that is not accepted yet is not served", async (t) => {
  const echo = await startEcho(t);
  assert.ok("port" in echo.target);
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(THREAD, {
    eval: true,
    workerData: { port: echo.target.port, bytes: request({}), shared },
  });
  t.after(() => thread.terminate());
  const received = once(thread, "message");
  Atomics.wait(shared, 0, 0);
  echo.listener.destroy();
  await echo.listener.close();
  assert.deepEqual(await received, [""]);
  assert.deepEqual(echo.requests, []);
});
