/**
 * ARCHITECTURE.md promise 12: an upstream that first says something once the deadline of a drain is over has its stream ended like
 * those that ran by then. A signal that has gone off tells nobody who comes later.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

test("it is ended as drained, and nothing of it is charged as delivered", async () => {
  const stream = new Relayed({ cut: AbortSignal.abort() });
  const end = await stream.ended;
  assert.deepEqual([end.reason, end.complete, end.delivered], ["draining", false, false]);
  assert.deepEqual(stream.settled, [end]);
  assert.ok(stream.aborted, "its upstream is told");
});
