/**
 * A finished stream leaves nothing in objects that outlive it: no listener on the signal of a drain, no timer, and no
 * entry among the streams that are read on.
 */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { Relayed } from "./rig.ts";

const READ_ON = { forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined, covers: () => true };

test("a hundred streams, ended in every way, leave no listener on the signal of a drain", async () => {
  const { signal } = new AbortController();
  const streams = Array.from({ length: 100 }, () => new Relayed({ cut: signal }));
  assert.equal(getEventListeners(signal, "abort").length, 100);
  for (const [at, stream] of streams.entries()) {
    stream.final = at % 2 === 0;
    if (at % 3 === 0) stream.clientLeaves();
    else stream.upstreamEnds();
  }
  const ends = await Promise.all(streams.map(({ ended }) => ended));
  assert.deepEqual([...new Set(ends.map(({ reason }) => reason))].sort(), [
    "client_gone",
    "complete",
    "upstream_invalid",
  ]);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a stream that was read on reports its end once, and leaves no timer", async () => {
  let begun = 0;
  let done = 0;
  const leaving = {
    ...READ_ON,
    begun: () => {
      begun++;
      return () => void done++;
    },
  };
  const stream = new Relayed({ leaving });
  stream.clientLeaves();
  assert.deepEqual([begun, done, stream.settled.length], [1, 0, 0]);
  stream.final = true;
  stream.say();
  assert.equal((await stream.ended).counts.final, true);
  stream.upstreamEnds();
  assert.deepEqual([begun, done, stream.clock.pending], [1, 1, 0]);
});

test("a draining stream whose client disconnects is read on for as long as it takes, and waits for no marker", async () => {
  const stream = new Relayed({ leaving: { ...READ_ON, begun: () => () => {} } });
  // Its count seems complete, and then it continues after a stop string.
  stream.final = true;
  stream.say();
  stream.final = false;
  stream.draining = true;
  stream.say();
  assert.equal(stream.clock.pending, 3, "three timers: heartbeat, drain and marker");
  stream.clientLeaves();
  assert.equal(stream.clock.pending, 1, "one timer: the check of the stream that is read to its end");
  for (let seconds = 0; seconds < 30; seconds++) stream.clock.advance(1_000);
  assert.deepEqual([stream.aborted, stream.settled], [false, []]);
  stream.final = true;
  stream.say();
  const { reason, stopped } = await stream.ended;
  assert.deepEqual([reason, stopped], ["client_gone", false]);
});

test("a stream that ends while its count and its marker are awaited leaves no timer", async () => {
  const stream = new Relayed();
  stream.final = true;
  stream.say();
  stream.final = false;
  stream.draining = true;
  stream.say();
  assert.equal(stream.clock.pending, 3, "three timers: heartbeat, drain and marker");
  stream.upstreamEnds();
  await stream.ended;
  assert.equal(stream.clock.pending, 0);
});
