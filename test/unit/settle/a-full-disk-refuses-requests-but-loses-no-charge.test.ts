/**
 * docs/failure-model.md row F1, invariant 29: when there is no room for the next segment, new requests are refused, and running
 * requests are still charged exactly once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createJournal } from "../../../src/settle/journal/open.ts";
import { createSettler } from "../../../src/settle/settler.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import {
  askOf,
  ForgetfulStore,
  HurriedClock,
  idOf,
  ManualClock,
  openOn,
  SMALL_BYTES_MAX,
  turns,
  voidOf,
} from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

function settlerOn(journal: Parameters<typeof createSettler>[0]["journal"], store: ForgetfulStore, clock: ManualClock) {
  const unrecorded: SettleAsk[] = [];
  const settler = createSettler({
    store,
    journal,
    clock,
    deadLetters: { add: async () => {} },
    onSettled: () => {},
    onDelay: () => {},
    onUnrecorded: (ask) => void unrecorded.push(ask),
  });
  return { settler, unrecorded };
}

test("without room for the next segment the journal is unusable, but charges still fit into the current one", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  disk.room = 8_192;
  const { journal } = await openOn(disk, clock);
  await turns();
  assert.match(journal.health().reason ?? "", /no room for the next journal segment: ENOSPC/);
  assert.equal(journal.health().usable, false);
  const final = journal.final(askOf(1));
  await clock.advance(2);
  await final;
  disk.room = Number.POSITIVE_INFINITY;
  await clock.advance(1_000);
  assert.equal(journal.health().usable, true, "the journal is usable as soon as there is space");
  await journal.close();
});

test("without any room, charges of running requests go straight to the store before their clients get the end of the answer", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  disk.room = 8_192;
  const { journal } = await openOn(disk, clock);
  const store = new ForgetfulStore();
  const { settler, unrecorded } = settlerOn(journal, store, clock);
  for (let number = 1; number <= 30; number++) {
    const settled = settler.settle(askOf(number));
    await clock.advance(2);
    await settled;
    assert.ok(store.settled.has(idOf(number)), "the charge is in the store before the client receives the end");
  }
  assert.ok(unrecorded.length > 10 && unrecorded.length < 30);
  assert.deepEqual(settler.unrecorded(), []);
  assert.equal(journal.health().usable, false);
  assert.equal(store.asks.length, 30);
  await journal.close();
});

test("without journal and store, charges are kept in memory, counted, and settled when the store answers again", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock);
  disk.fault = { at: disk.calls + 1, times: Number.POSITIVE_INFINITY, code: "EIO" };
  const store = new ForgetfulStore();
  store.away = true;
  const { settler } = settlerOn(journal, store, clock);
  const settled = settler.settle(askOf(1));
  await clock.advance(2);
  await clock.advance(2);
  await settled;
  assert.deepEqual(settler.unrecorded(), [askOf(1)]);
  store.away = false;
  await clock.advance(50);
  assert.deepEqual(settler.unrecorded(), []);
  assert.equal(settler.pending(), 0);
  assert.equal(store.settled.get(idOf(1))?.amount, askOf(1).amount);
  await journal.close();
});

test("a broken journal repairs itself and then contains what was charged meanwhile", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal, alarms } = await openOn(disk, clock);
  disk.fault = { at: disk.calls + 1, times: Number.POSITIVE_INFINITY, code: "EIO" };
  journal.open({ voided: voidOf(1), hold: nanoUsd(1n) });
  await clock.advance(2);
  assert.equal(journal.health().usable, false);
  assert.ok(alarms.some((alarm) => alarm.includes("broken")));
  await assert.rejects(journal.final(askOf(2)), { name: "JournalBrokenError" });
  journal.open({ voided: voidOf(3), hold: nanoUsd(1n) });
  disk.fault = undefined;
  await clock.advance(1_000);
  await clock.advance(2);
  assert.equal(journal.health().usable, true);
  const { leftovers } = await openOn(disk.afterKill(), new HurriedClock());
  assert.deepEqual(leftovers.map(({ ask }) => ask.requestId).sort(), [1, 2, 3].map(idOf));
  await journal.close();
});

test("at 80 % of bytes_max new requests are refused, and a full journal can still be opened and emptied", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock);
  let count = 0;
  while (journal.health().usable) {
    count++;
    const final = journal.final(askOf(count));
    await clock.advance(2);
    await final;
  }
  const { fillRatio, unsettled, reason } = journal.health();
  assert.ok(fillRatio >= 0.8 && fillRatio < 0.9);
  assert.equal(unsettled, count);
  assert.match(reason ?? "", /full/);
  const running = journal.final(askOf(count + 1));
  await clock.advance(2);
  await running;
  await journal.close();
  const again = await openOn(disk, clock);
  assert.equal(again.leftovers.length, count + 1);
  for (const { ask } of again.leftovers) again.journal.ack(ask.requestId, "settled");
  await turns();
  await again.log.clean(0);
  assert.ok(again.journal.health().fillRatio < 0.75);
  assert.equal(again.journal.health().usable, true);
  await again.journal.close();
});

test("new requests are refused when too many requests have no answer of the store, as each is kept in memory", async () => {
  const clock = new ManualClock();
  const parts = { disk: new SimDisk(), clock, fsync: "group", bytesMax: SMALL_BYTES_MAX, alarm() {} } as const;
  const { journal } = await createJournal({ ...parts, unsettledMax: 4 });
  for (const number of [1, 2, 3]) journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
  const final = journal.final(askOf(3));
  await clock.advance(5);
  await final;
  assert.deepEqual([journal.health().reason, journal.health().unsettled], [undefined, 1]);
  // Its stream is still running.
  journal.open({ voided: voidOf(4), hold: nanoUsd(1n) });
  assert.match(journal.health().reason ?? "", /too many charges wait/);
  assert.equal(journal.health().usable, false);
  journal.ack(idOf(3), "settled");
  assert.equal(journal.health().usable, true);
  await journal.close();
});
