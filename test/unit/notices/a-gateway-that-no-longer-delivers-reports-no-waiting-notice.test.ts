/**
 * Only the gateway that delivers knows which notices wait. One that has lost the lease to another drops what it knew:
 * otherwise its gauge would grow forever, and an alert would fire for notices that the other one has delivered.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { rest, startRig, until } from "./rig.ts";

test("the age of the oldest notice is 0 once another gateway delivers", async (t) => {
  let isOurs = true;
  const { clock, receiver, notices, addNotice, metric } = await startRig(t, {
    calls: { leaseNotices: async () => isOurs },
  });
  receiver.answer = () => ({ status: 500 });
  await addNotice("first");
  await until(clock, () => receiver.log.length === 1);
  await rest(clock);
  await clock.advance(1_000);
  notices.measure();
  assert.ok((await metric("notices_oldest_seconds")) > 0, "it has failed and waits");
  isOurs = false;
  await clock.advance(2_000);
  await rest(clock);
  assert.equal(notices.status()?.isLeader, false);
  await clock.advance(1_000);
  notices.measure();
  assert.equal(await metric("notices_oldest_seconds"), 0);
});
