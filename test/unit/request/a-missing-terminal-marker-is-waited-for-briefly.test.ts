/**
 * An upstream that has sent its stop reason and its counts has two seconds to send the terminal marker, each time
 * again: one that continues after all is not cut.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

test("a stream that continues is not cut, and the wait starts again when it seems to have ended again", async () => {
  const stream = new Relayed();
  stream.final = true;
  stream.say();
  stream.clock.advance(1_000);
  stream.final = false;
  stream.say();
  stream.clock.advance(1_000);
  assert.deepEqual([stream.aborted, stream.settled], [false, []]);
  stream.final = true;
  stream.say();
  stream.clock.advance(1_999);
  assert.deepEqual([stream.aborted, stream.settled], [false, []]);
  stream.clock.advance(1);
  assert.equal(stream.aborted, true);
  assert.deepEqual(
    stream.settled.map(({ reason }) => reason),
    ["complete"],
  );
  await stream.ended;
});

test("a client that disconnects during the wait has received all of it, even if no frame was the model's output", async () => {
  const stream = new Relayed({ semantic: false });
  stream.final = true;
  stream.say();
  stream.clientLeaves();
  const { reason, complete, delivered } = await stream.ended;
  assert.deepEqual([reason, complete, delivered, stream.aborted], ["complete", true, true, true]);
});
