/**
 * Nothing waits for an ACK, and one that is lost in a kill costs only a question to the store: so it is written with the next
 * record.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeAck } from "../../../src/settle/journal/payload.ts";
import { scan } from "../../../src/settle/journal/segments.ts";
import { askOf, idOf, ManualClock, openOn, turns, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

async function settled() {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock);
  await journal.final(askOf(1));
  const { writes } = disk;
  journal.ack(idOf(1), "settled");
  await turns();
  assert.equal(disk.writes, writes, "the ACK alone is not written");
  const acks = () =>
    scan(disk.bytesOf(disk.segments()[0] as string)).frames.flatMap(({ payload }) => decodeAck(payload)?.id ?? []);
  return { disk, clock, journal, writes, acks };
}

test("an ACK is written together with the next record", async () => {
  const { disk, journal, writes, acks } = await settled();
  journal.open({ voided: voidOf(2), hold: askOf(2).amount });
  await turns();
  assert.equal(disk.writes, writes + 1);
  assert.deepEqual(acks(), [idOf(1)]);
  await journal.close();
});

test("an ACK that no record follows is written a tenth of a second later", async () => {
  const { clock, journal, acks } = await settled();
  await clock.advance(99);
  assert.deepEqual(acks(), []);
  await clock.advance(1);
  assert.deepEqual(acks(), [idOf(1)]);
  await journal.close();
});

test("an ACK that is still queued is written when the journal closes", async () => {
  const { journal, acks } = await settled();
  await journal.close();
  assert.deepEqual(acks(), [idOf(1)]);
});
