/** ARCHITECTURE.md promise 3: nobody reads the answer of a client that has left, so its slowness holds the upstream up no longer. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Leaving } from "../../../src/request/leaving.ts";
import { Relayed } from "./rig.ts";

const LEAVING: Leaving = {
  ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined },
  covers: () => true,
  begun: () => () => {},
};

test("a client that takes no more, and then leaves", async () => {
  const stream = new Relayed({ leaving: LEAVING });
  stream.flowing = false;
  stream.say();
  assert.equal(stream.held, true);
  stream.clientLeaves();
  assert.equal(stream.held, false);
  stream.say();
  assert.equal(stream.held, false, "what it says now is for nobody");
  stream.final = true;
  stream.upstreamEnds();
  assert.equal((await stream.ended).reason, "client_gone");
});
