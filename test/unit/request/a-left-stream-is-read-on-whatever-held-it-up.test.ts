/**
 * ARCHITECTURE.md promise 3: nobody reads the answer of a client that has left, so neither its slowness nor a hold that should grow
 * holds the upstream up any longer.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { HoldExtension } from "../../../src/request/hold-extension.ts";
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
  assert.deepEqual([stream.held, stream.heldFirmly], [true, false]);
  stream.clientLeaves();
  assert.equal(stream.held, false);
  stream.say();
  assert.equal(stream.held, false, "what it says now is for nobody");
  stream.final = true;
  stream.upstreamEnds();
  assert.equal((await stream.ended).reason, "client_gone");
});

test("a stream that waits for the store's word on its hold, and whose client then leaves", async () => {
  const holdExtension = { onAnswer() {}, look: () => "wait" } as unknown as HoldExtension;
  const stream = new Relayed({ leaving: LEAVING, holdExtension });
  assert.deepEqual([stream.held, stream.heldFirmly], [true, true], "what is not granted yet must not flow");
  stream.clientLeaves();
  assert.equal(stream.held, false);
  stream.say();
  assert.equal(stream.held, false, "its hold stays as it is");
  stream.final = true;
  stream.upstreamEnds();
  assert.equal((await stream.ended).reason, "client_gone");
});

test("a drain that cuts what is read on finds that its client had left before", async () => {
  const cut = new AbortController();
  const stream = new Relayed({ leaving: LEAVING, cut: cut.signal });
  stream.clientLeaves();
  cut.abort();
  assert.deepEqual([(await stream.ended).reason, stream.aborted], ["client_gone", true]);
});
