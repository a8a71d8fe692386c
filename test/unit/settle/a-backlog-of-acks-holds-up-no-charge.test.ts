/**
 * A walk that gives charges back to a store writes an ACK for each. More of them than a call takes arguments, and one that found
 * the queue of a disk that heals full, are no reason for a charge to wait.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createJournal } from "../../../src/settle/journal/open.ts";
import { JournalBrokenError } from "../../../src/settle/journal.ts";
import { askOf, idOf, ManualClock, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

/** V8 takes some 125,000 arguments. */
const ACKS = 130_000;

test("a charge is durable after a disk has healed that many ACKs waited for", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal, log } = await createJournal({ disk, clock, fsync: "group", bytesMax: 64 * 1024 * 1024, alarm() {} });
  await journal.final(askOf(1));
  disk.fault = { at: disk.calls + 1, times: Number.POSITIVE_INFINITY, code: "EIO" };
  const refused = assert.rejects(journal.final(askOf(2)), JournalBrokenError);
  for (let tries = 0; tries < 10; tries++) await clock.advance(100);
  await refused;
  for (let number = 0; number < ACKS; number++) log.restored(idOf(1_000 + number));

  disk.fault = undefined;
  // The next segment is not there yet: the ACKs are in the queue, which is full when one more comes.
  const made = Promise.withResolvers<void>();
  const create = disk.create.bind(disk);
  disk.create = async (name, bytes) => {
    await made.promise;
    return create(name, bytes);
  };
  for (let tries = 0; tries < 12; tries++) await clock.advance(100);
  log.restored(idOf(999));
  made.resolve();
  await turns();

  let isDurable = false;
  const final = journal.final(askOf(3)).then(() => {
    isDurable = true;
  });
  for (let tries = 0; tries < 40 && !isDurable; tries++) await clock.advance(100);
  assert.ok(isDurable, journal.health().reason ?? "no reason is given");
  await final;
  await journal.close();
});
