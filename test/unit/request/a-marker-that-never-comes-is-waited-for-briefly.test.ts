/**
 * An upstream that has said why it ended and what it counted is given two seconds for its terminal marker, and each time anew:
 * one that goes on after all is not cut.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

test("one that goes on is not cut, and is waited for again when it seems to have ended again", async () => {
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

test("a client that leaves meanwhile has had all of it, also where no frame of it was the model's", async () => {
  const stream = new Relayed({ semantic: false });
  stream.final = true;
  stream.say();
  stream.clientLeaves();
  const { reason, complete, delivered } = await stream.ended;
  assert.deepEqual([reason, complete, delivered, stream.aborted], ["complete", true, true, true]);
});
