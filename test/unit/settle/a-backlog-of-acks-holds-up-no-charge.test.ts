/**
 * A pass that gives charges back to a store writes an ACK for each. A charge must not wait because the queue of a recovering
 * disk is full of ACKs, even if there are more of them than one function call takes arguments.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createJournal } from "../../../src/settle/journal/open.ts";
import { JournalBrokenError } from "../../../src/settle/journal.ts";
import { askOf, idOf, ManualClock, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

/** V8 accepts about 125,000 arguments in one call. */
const ACKS = 130_000;

test("a charge becomes durable after a recovered disk has taken a queue of 130,000 ACKs", async () => {
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
  // The next segment does not exist yet: the ACKs wait in the queue, which is full when one more arrives.
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
