/**
 * ARCHITECTURE.md promises 8 and 13: when a silent stream sends a heartbeat, and that a client that does not read gets
 * none.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

const EVERY_MS = 60_000;

test("a heartbeat is sent when the silence has lasted for the interval, counted from the last frame", async () => {
  const stream = new Relayed({ heartbeat: "beat" });
  stream.clock.advance(EVERY_MS / 3);
  stream.say();
  stream.clock.advance(EVERY_MS - 1);
  assert.deepEqual(stream.written, ["a", "a"]);
  stream.clock.advance(1);
  assert.deepEqual(stream.written, ["a", "a", "beat"]);
  stream.clock.advance(EVERY_MS);
  assert.deepEqual(stream.written, ["a", "a", "beat", "beat"]);
});

test("a client that does not read gets no heartbeats, because they would pile up", async () => {
  const stream = new Relayed({ heartbeat: "beat" });
  stream.flowing = false;
  stream.say();
  stream.clock.advance(5 * EVERY_MS);
  assert.deepEqual(stream.written, ["a", "a"]);
});
