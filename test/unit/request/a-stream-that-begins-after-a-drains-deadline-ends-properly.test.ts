/**
 * ARCHITECTURE.md promise 12: a stream whose upstream first answers after a drain's deadline ends like those that were
 * running at the deadline. A signal that is already aborted emits no event for later listeners.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

test("it ends as drained, and nothing of it is charged as delivered", async () => {
  const stream = new Relayed({ cut: AbortSignal.abort() });
  const end = await stream.ended;
  assert.deepEqual([end.reason, end.complete, end.delivered], ["draining", false, false]);
  assert.deepEqual(stream.settled, [end]);
  assert.ok(stream.aborted, "the upstream is cancelled");
});
