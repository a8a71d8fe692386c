/**
 * A connection that the parent has handed to a worker and that the worker sends back. Where the worker was the last one,
 * node:cluster has nobody to hand it to, and keeps it open: it must be closed, which it is when it is said to be taken.
 */
import assert from "node:assert/strict";
import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import test, { type TestContext } from "node:test";
import { forkWorker } from "../../../src/workers/handed-over.ts";

/** A worker that was handed a connection; what node:cluster hears when it closes, and then sends the connection back. */
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

test("a connection that the last worker sends back is closed, though another one serves by then", (t) => {
  assert.equal(sentBack(t, { atClose: false, atReturn: true }).accepted, true);
  assert.equal(sentBack(t, { atClose: true, atReturn: false }).accepted, true, "the other one has left meanwhile");
});

test("a connection that one of several workers sends back goes to another one", (t) => {
  assert.equal(sentBack(t, { atClose: true, atReturn: true }).accepted, false);
});
