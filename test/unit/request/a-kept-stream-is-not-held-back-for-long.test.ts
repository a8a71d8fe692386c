/**
 * An upstream that keeps the answer may write on while a slow client holds back its stream, and the client can retrieve all of it
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md). So after a minute in total, the client counts as disconnected, and the
 * upstream is read to its count.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import type { KeptState } from "../../../src/request/stored/kept-answer.ts";
import { KEPT_HELD_BACK_MS_MAX } from "../../../src/request/stream-timers.ts";
import { Relayed } from "./rig.ts";

const LEAVING: DisconnectPlan = {
  ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined },
  covers: () => true,
  begun: () => () => {},
};

/** The client stops reading for this long. */
function heldBack(stream: Relayed, forMs: number): void {
  stream.flowing = false;
  stream.say();
  assert.equal(stream.held, true);
  stream.clock.advance(forMs);
}

test("the upstream is read to its count when the client has held it back for a minute", async () => {
  const stream = new Relayed({
    leaving: LEAVING,
    kept: async () => ({ state: "unknown" }),
    heldBackMsMax: KEPT_HELD_BACK_MS_MAX,
  });
  heldBack(stream, 60_000);
  assert.equal(stream.held, false);
  stream.final = true;
  stream.upstreamEnds();
  const { reason, delivered, counts } = await stream.ended;
  assert.deepEqual([reason, delivered, counts.final], ["client_gone", true, true]);
});

test("a client that reads a little now and then holds it back for no more than a minute in total", () => {
  const stream = new Relayed({
    leaving: LEAVING,
    kept: async () => ({ state: "unknown" }),
    heldBackMsMax: KEPT_HELD_BACK_MS_MAX,
  });
  for (let times = 0; times < 2; times++) {
    heldBack(stream, 25_000);
    stream.clientReads();
    stream.clock.advance(100_000);
    assert.equal(stream.held, false);
  }
  heldBack(stream, 9_999);
  assert.equal(stream.held, true);
  stream.clock.advance(1);
  assert.equal(stream.held, false);
  stream.say();
  assert.equal(stream.held, false, "the client waits for nothing more");
});

test("a client is not disconnected while the server is asked about the answer", async () => {
  const answer = Promise.withResolvers<KeptState>();
  const stream = new Relayed({
    leaving: LEAVING,
    kept: () => answer.promise,
    heldBackMsMax: KEPT_HELD_BACK_MS_MAX,
  });
  heldBack(stream, 59_000);
  stream.upstreamFails("upstream_timeout");
  stream.clock.advance(4_000);
  answer.resolve({ state: "unknown" });
  assert.equal((await stream.ended).reason, "upstream_timeout");
  assert.equal(stream.destroyed, false);
});

test("a stream without this limit waits for its client", () => {
  const stream = new Relayed({ leaving: LEAVING });
  heldBack(stream, 300_000);
  assert.equal(stream.held, true);
});
