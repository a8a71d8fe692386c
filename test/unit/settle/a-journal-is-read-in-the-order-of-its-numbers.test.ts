/**
 * A folder lists its files in any order. The journal reads its segments by number: an ACK that was read before its charge
 * would leave the charge unsettled. A new segment never gets the number of a file that exists, whatever the file holds.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readFolder } from "../../../src/settle/journal/startup.ts";
import { Records } from "./records.ts";
import { SimDisk } from "./sim-disk.ts";

/** A disk with these segments, listed newest first. */
function diskOf(...segments: readonly Buffer[]): SimDisk {
  const disk = new SimDisk();
  for (const [at, seen] of [...segments.entries()].toReversed()) {
    disk.files.set(`journal-${`${at + 1}`.padStart(10, "0")}.seg`, { seen, durable: undefined, unsynced: [] });
  }
  return disk;
}

test("charges whose ACKs are in later segments are settled, however the folder lists the segments", async () => {
  const records = new Records().final(1, 10).final(2, 11).next().ack(1, 20).next().ack(2, 30);
  const segments = await Promise.all(records.segments().map(({ number, end }) => records.read(number, 0, end)));
  const alarms: string[] = [];
  const found = await readFolder(diskOf(...segments), (alarm) => void alarms.push(alarm));
  assert.deepEqual(
    found.segments.map(({ number }) => number),
    [1, 2, 3],
  );
  assert.deepEqual([found.unsettled.charges, found.last?.segment, alarms], [0, 3, []]);
});

test("the next segment has a number above that of a file with no records", async () => {
  const records = new Records().final(1, 10);
  const used = await records.read(1, 0, records.segments()[0]?.end ?? 0);
  const alarms: string[] = [];
  const found = await readFolder(diskOf(used, Buffer.alloc(4_096, "x")), (alarm) => void alarms.push(alarm));
  assert.deepEqual([found.segments.length, found.next], [1, 3]);
  assert.match(alarms.join(), /journal-0000000002\.seg has no journal records/);
});
