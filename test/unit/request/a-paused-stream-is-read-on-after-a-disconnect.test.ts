/**
 * ARCHITECTURE.md promise 3: the answer of a disconnected client has no reader, so neither the client's slowness nor a
 * hold that should grow pauses the upstream any longer.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import type { HoldExtension } from "../../../src/request/hold-extension.ts";
import { Relayed } from "./rig.ts";

const LEAVING: DisconnectPlan = {
  ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined },
  covers: () => true,
  begun: () => () => {},
};

test("the upstream is resumed when a client that had stopped reading disconnects", async () => {
  const stream = new Relayed({ leaving: LEAVING });
  stream.flowing = false;
  stream.say();
  assert.deepEqual([stream.held, stream.heldFirmly], [true, false]);
  stream.clientLeaves();
  assert.equal(stream.held, false);
  stream.say();
  assert.equal(stream.held, false, "output after the disconnect is not held back");
  stream.final = true;
  stream.upstreamEnds();
  assert.equal((await stream.ended).reason, "client_gone");
});

test("the upstream is resumed when the client disconnects while the store's answer on the hold is pending", async () => {
  const holdExtension = { onAnswer() {}, look: () => "wait" } as unknown as HoldExtension;
  const stream = new Relayed({ leaving: LEAVING, holdExtension });
  assert.deepEqual([stream.held, stream.heldFirmly], [true, true], "output beyond the hold is not sent");
  stream.clientLeaves();
  assert.equal(stream.held, false);
  stream.say();
  assert.equal(stream.held, false, "the hold is unchanged");
  stream.final = true;
  stream.upstreamEnds();
  assert.equal((await stream.ended).reason, "client_gone");
});

test("a stream that is read on and cut by a drain ends as client_gone", async () => {
  const cut = new AbortController();
  const stream = new Relayed({ leaving: LEAVING, cut: cut.signal });
  stream.clientLeaves();
  cut.abort();
  assert.deepEqual([(await stream.ended).reason, stream.aborted], ["client_gone", true]);
});
