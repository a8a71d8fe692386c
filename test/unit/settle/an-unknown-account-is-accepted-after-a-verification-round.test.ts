/**
 * A store that has just lost an account answers that there is none: its charges wait until the journal has given the account
 * back.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type DeadLetter, openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { createSettler } from "../../../src/settle/settler.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { askOf, ForgetfulStore, ManualClock, openOn, turns } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

async function bench(restored: (store: ForgetfulStore, look: number) => Promise<void>) {
  const [disk, clock, store] = [new SimDisk(), new ManualClock(), new ForgetfulStore()];
  const { journal } = await openOn(disk, clock);
  const letters: DeadLetter[] = [];
  let looks = 0;
  const settler = createSettler({
    store,
    journal,
    clock,
    deadLetters: await openDeadLetters(disk, clock, (letter) => void letters.push(letter)),
    restored: () => restored(store, ++looks),
    onSettled: () => {},
    onDelay: () => {},
    onUnrecorded: () => {},
  });
  store.missing.add(askOf(1).tag);
  const settled = settler.settle(askOf(1));
  await clock.advance(2);
  await settled;
  await turns();
  return { clock, store, journal, letters, settler, looks: () => looks };
}

test("an account that the round of verification restores is charged", async () => {
  const { store, journal, letters, looks } = await bench(async (lossy) => lossy.missing.clear());
  assert.equal(store.settled.size, 1);
  assert.deepEqual([letters, looks(), journal.health().unsettled], [[], 1, 0]);
  await journal.close();
});

test("a charge to an account that the round does not restore becomes a dead letter", async () => {
  const { journal, letters, looks } = await bench(async () => {});
  assert.deepEqual([letters.map(({ reason }) => reason), looks()], [["unknown_account"], 1]);
  await journal.close();
});

test("the charge waits while a round is impossible", async () => {
  const { clock, store, journal, letters } = await bench(async (lossy, look) => {
    if (look < 3) throw new StoreError("older", "the store lost data");
    lossy.missing.clear();
  });
  assert.deepEqual([letters.length, journal.health().unsettled], [0, 1]);
  await clock.advance(50);
  await clock.advance(100);
  assert.deepEqual([letters.length, journal.health().unsettled, store.settled.size], [0, 0, 1]);
  await journal.close();
});
