/**
 * Some upstreams go on after their last frame. The rest of a complete answer is discarded, so that its connection can serve
 * the next request; one that is not complete is stopped.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

test("the rest of a complete answer is discarded, and an upstream whose client has disconnected is stopped", async () => {
  const complete = new Relayed();
  complete.final = true;
  complete.upstreamEnds();
  assert.equal((await complete.ended).reason, "complete");
  assert.deepEqual([complete.discarded, complete.aborted], [true, false]);
  const left = new Relayed();
  left.clientLeaves();
  assert.equal((await left.ended).reason, "client_gone");
  assert.deepEqual([left.discarded, left.aborted], [false, true]);
});
