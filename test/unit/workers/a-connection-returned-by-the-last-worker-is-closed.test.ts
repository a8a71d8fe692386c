/**
 * A connection that the parent has handed to a worker and that the worker sends back. If it was the last worker, node:cluster
 * has no other one for the connection and keeps it open. The parent marks it as accepted, so that it is closed.
 */
import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import test, { type TestContext } from "node:test";
import { forkWorker } from "../../../src/workers/handed-over.ts";

/**
 * A worker that gets a connection, closes, and then sends the connection back. @returns the message as node:cluster sees it.
 */
function sentBack(t: TestContext, othersServe: { atClose: boolean; atReturn: boolean }): { accepted?: boolean } {
  const child = Object.assign(new EventEmitter(), { send: () => true });
  const { mock } = t.mock.method(cluster, "fork", () => ({ process: child, on() {} }));
  let doServe = othersServe.atClose;
  forkWorker(() => doServe);
  mock.restore();
  const handOver: (message: object) => boolean = child.send;
  handOver({ cmd: "NODE_CLUSTER", act: "newconn", seq: 7 });
  child.emit("internalMessage", { cmd: "NODE_CLUSTER", act: "close" });
  doServe = othersServe.atReturn;
  const back = { cmd: "NODE_CLUSTER", ack: 7, accepted: false };
  child.emit("internalMessage", back);
  return back;
}

test("a connection that the last worker sends back is closed, even if another worker serves by then", (t) => {
  assert.equal(sentBack(t, { atClose: false, atReturn: true }).accepted, true);
  assert.equal(
    sentBack(t, { atClose: true, atReturn: false }).accepted,
    true,
    "the other worker has ended in the meantime",
  );
});

test("a connection that one of several workers sends back is handed to another one", (t) => {
  assert.equal(sentBack(t, { atClose: true, atReturn: true }).accepted, false);
});
