/**
 * ARCHITECTURE.md promise 12, docs/failure-model.md row A6: connections that the system has established, but that the process has not accepted yet
 * when its listener closes, are served. The clients are in a thread, and connect while this one is blocked.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import test, { type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { request, startEcho } from "./echo.ts";

const CLIENTS = 5;
/** Connects and sends the requests, counts those in `shared`, and reports the first line of each answer. */
const THREAD = `
  const { connect } = require("node:net");
  const { parentPort, workerData: { port, bytes, shared, clients } } = require("node:worker_threads");
  const lines = Array.from({ length: clients }, () => new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (piece) => { text += piece; });
    socket.on("error", (error) => { text ||= error.code; });
    socket.on("close", () => resolve(text.split("\\r\\n")[0]));
    socket.write(bytes, () => { Atomics.add(shared, 0, 1); Atomics.notify(shared, 0); });
  }));
  Promise.all(lines).then((all) => parentPort.postMessage(all));
`;

/** Resolves where Node handles what the system reports: in the same turn, nothing is accepted after that. */
const afterAccepting = async () => {
  await stat(".");
};
/** Resolves at the end of a turn: connections are accepted in the next one. */
const beforeAccepting = () => new Promise<void>((resolve) => setImmediate(resolve));

async function answersAll(t: TestContext, place: () => Promise<void>): Promise<void> {
  const echo = await startEcho(t);
  assert.ok("port" in echo.target);
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { port: echo.target.port, bytes: request({}), shared, clients: CLIENTS };
  const thread = new Worker(THREAD, { eval: true, workerData });
  t.after(() => thread.terminate());
  const lines = once(thread, "message");
  await place();
  for (let sent = 0; sent < CLIENTS; sent = Atomics.load(shared, 0)) Atomics.wait(shared, 0, sent);
  const closed = echo.listener.close();
  assert.deepEqual(await lines, [Array(CLIENTS).fill("HTTP/1.1 200 OK")]);
  await closed;
  assert.equal(echo.requests.length, CLIENTS);
}

for (const [when, place] of [
  ["before connections are accepted", beforeAccepting],
  ["after connections were accepted", afterAccepting],
] as const) {
  test(`requests on connections that are not accepted yet are answered if the listener closes ${when}`, async (t) => {
    await answersAll(t, place);
  });
}
