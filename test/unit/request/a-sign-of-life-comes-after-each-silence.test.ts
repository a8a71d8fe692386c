/** ARCHITECTURE.md promises 8 and 13: when a silent stream says that it lives, and that it says nothing to a client that takes nothing. */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

const EVERY_MS = 60_000;

test("it comes when the silence has lasted so long, counted from the last frame", async () => {
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

test("a client that reads nothing gets none: they would pile up behind it", async () => {
  const stream = new Relayed({ heartbeat: "beat" });
  stream.flowing = false;
  stream.say();
  stream.clock.advance(5 * EVERY_MS);
  assert.deepEqual(stream.written, ["a", "a"]);
});
