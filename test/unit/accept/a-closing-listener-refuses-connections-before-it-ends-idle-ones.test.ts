/**
 * ARCHITECTURE.md promise 12, docs/failure-model.md row A6: a client whose idle connection ends connects again at once. If the listening socket
 * were still open then, its new connection would be established and reset, perhaps with a request on it. The client is in
 * a thread, and this one is blocked from the end of the idle connection until it is known what the client has met.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Socket } from "node:net";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { request, startEcho } from "./echo.ts";

const REFUSED = 1;
const WAIT_MS_MAX = 10_000;
/** Sends a request, and connects again when its connection ends: `shared` then tells whether that was refused. */
const THREAD = `
  const { connect } = require("node:net");
  const { parentPort, workerData: { port, bytes, shared } } = require("node:worker_threads");
  const met = (what) => {
    Atomics.store(shared, 0, what);
    Atomics.notify(shared, 0);
  };
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
  socket.once("data", () => parentPort.postMessage("idle"));
  socket.on("close", () => {
    const again = connect(port, "127.0.0.1", () => met(2));
    again.on("error", ({ code }) => met(code === "ECONNREFUSED" ? ${REFUSED} : 3));
  });
`;

test("a client that connects again when its idle connection ends is refused, not reset", async (t) => {
  const echo = await startEcho(t);
  assert.ok("port" in echo.target);
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(THREAD, { eval: true, workerData: { port: echo.target.port, bytes: request({}), shared } });
  t.after(() => thread.terminate());
  await once(thread, "message");
  const { destroy } = Socket.prototype;
  t.after(() => {
    Socket.prototype.destroy = destroy;
  });
  Socket.prototype.destroy = function (error) {
    destroy.call(this, error);
    Atomics.wait(shared, 0, 0, WAIT_MS_MAX);
    return this;
  };
  await echo.listener.close();
  assert.equal(Atomics.load(shared, 0), REFUSED);
});
