/**
 * docs/decisions/what-a-disconnect-costs.md: silence is the upstream's. What it sends while the gateway reads nothing,
 * because the client accepts nothing, waits unread, so this time shows nothing about what the model hides.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

test("only the time in which the upstream is read counts", async () => {
  const stream = new Relayed();
  stream.flowing = false;
  stream.say();
  assert.equal(stream.held, true);
  stream.clock.advance(30_000);
  stream.flowing = true;
  stream.clientReads();
  stream.clock.advance(5_000);
  stream.clientLeaves();
  const { counts } = await stream.ended;
  assert.equal(counts.silentMs, 4_000, "without the first second of a silence");
});
