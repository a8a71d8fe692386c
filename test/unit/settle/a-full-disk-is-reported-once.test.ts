/**
 * While the disk is full, the journal tries once a second to make its next segment. The operator gets one alarm for this.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ManualClock, openOn, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

test("a disk that stays full causes one alarm, however often the journal tries again", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  disk.room = 8_192;
  const { journal, alarms } = await openOn(disk, clock);
  const about = () => alarms.filter((alarm) => alarm.includes("no room for its next segment")).length;
  const waitASecond = async () => {
    await clock.advance(1_000);
    await turns();
  };
  await turns();
  for (let second = 0; second < 5; second++) await waitASecond();
  assert.equal(about(), 1);
  assert.equal(journal.health().usable, false);
  disk.room = Number.POSITIVE_INFINITY;
  await waitASecond();
  assert.equal(journal.health().usable, true);
  assert.equal(about(), 1);
  await journal.close();
});
