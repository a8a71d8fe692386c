/**
 * docs/failure-model.md row E1 and invariant 33: a charge is verified when 30 seconds and 10 minutes have passed, and
 * its record is removed when a day has passed, whatever the wall clock says meanwhile. Over a restart only the time
 * counts in which a process ran.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { RECORD } from "../../../src/settle/journal/frame.ts";
import { encode, encodeAck, encodeCharge } from "../../../src/settle/journal/payload.ts";
import { segmentName } from "../../../src/settle/journal/segments.ts";
import { createVerifier } from "../../../src/settle/journal/verify.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { frameOf } from "./records.ts";
import { askOf, ForgetfulStore, idOf, ManualClock, openOn, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const HOUR_MS = 3_600_000;
const YEARS_MS = 10 * 365 * 24 * HOUR_MS;
const JUMPS = [
  ["an hour ahead", HOUR_MS],
  ["an hour back", -HOUR_MS],
  ["ten years ahead", YEARS_MS],
  ["ten years back", -YEARS_MS],
] as const;
const BOOT_WALL_MS = Date.UTC(2026, 0, 1);

/** A process whose monotonic clock begins anew. */
async function processOn(disk: SimDisk, store: ForgetfulStore, wallMs = BOOT_WALL_MS) {
  const clock = new ManualClock();
  clock.nowMs = 1_000;
  clock.wallAheadMs = wallMs - clock.nowMs;
  const { journal, log } = await openOn(disk, clock);
  const restored: string[] = [];
  const verifier = createVerifier({
    log,
    store,
    clock,
    deadLetters: await openDeadLetters(disk, clock, () => {}),
    storeIdentity: async () => "one",
    onRestored: ({ requestId }) => void restored.push(requestId),
    onIdentity: () => {},
    onError: assert.ifError,
  });
  const charge = async (number: number) => {
    journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
    journal.checkpoint(askOf(number));
    const final = journal.final(askOf(number));
    await clock.advance(2);
    await final;
    await store.settle(askOf(number));
    journal.ack(idOf(number), "settled");
    await clock.advance(100);
  };
  const tickAfter = async (ms: number) => {
    await clock.advance(ms);
    await verifier.tick();
  };
  /** How often the first charge was looked for once this much time has passed. */
  const lookedAfter = async (ms: number) => {
    await tickAfter(ms);
    return store.looked.filter((id) => id === idOf(1)).length;
  };
  const stop = async () => {
    await verifier.stop();
    const closed = journal.close();
    await clock.advance(2);
    await closed;
  };
  return { disk, clock, journal, restored, charge, tickAfter, lookedAfter, stop };
}

for (const [jump, byMs] of JUMPS) {
  test(`a charge is verified after 30 seconds and after 10 minutes if the clock is set ${jump} in between`, async () => {
    const { clock, journal, charge, lookedAfter } = await processOn(new SimDisk(), new ForgetfulStore());
    await charge(1);
    clock.wallAheadMs += byMs;
    assert.equal(await lookedAfter(29_000), 0);
    assert.equal(await lookedAfter(1_000), 1);
    clock.wallAheadMs -= byMs;
    assert.equal(await lookedAfter(569_000), 1);
    assert.equal(await lookedAfter(1_000), 2);
    await journal.close();
  });

  test(`so is one that is made when the clock has been set ${jump}, in a segment that begins then`, async () => {
    const { disk, clock, journal, charge, lookedAfter } = await processOn(new SimDisk(), new ForgetfulStore());
    const before = disk.segments().length;
    clock.wallAheadMs += byMs;
    for (let number = 2; disk.segments().length < before + 2; number++) await charge(number);
    await charge(1);
    assert.equal(await lookedAfter(29_000), 0);
    assert.equal(await lookedAfter(1_000), 1);
    assert.equal(await lookedAfter(569_000), 1);
    assert.equal(await lookedAfter(1_000), 2);
    await journal.close();
  });

  test(`a charge is verified after 30 seconds and after 10 minutes if the clock is set ${jump} over a restart`, async () => {
    const store = new ForgetfulStore();
    const first = await processOn(new SimDisk(), store);
    await first.charge(1);
    const second = await processOn(first.disk.afterKill(), store, BOOT_WALL_MS + byMs);
    assert.equal(await second.lookedAfter(29_000), 0);
    assert.equal(await second.lookedAfter(1_000), 1);
    assert.equal(await second.lookedAfter(569_000), 1);
    assert.equal(await second.lookedAfter(1_000), 2);
    await second.journal.close();
  });
}

test("a charge that is lost after its first verification is restored by the second, although the clock was set back", async () => {
  const store = new ForgetfulStore();
  const { clock, journal, restored, charge, tickAfter } = await processOn(new SimDisk(), store);
  await charge(1);
  clock.wallAheadMs -= HOUR_MS;
  await tickAfter(30_000);
  store.settled.delete(idOf(1));
  await tickAfter(570_000);
  assert.deepEqual(restored, [idOf(1)]);
  await journal.close();
});

/** Processes that receive nothing, each of which runs this long. */
async function shortProcesses(
  { disk, store }: { disk: SimDisk; store: ForgetfulStore },
  { count, seconds, isKilled }: { count: number; seconds: number; isKilled: boolean },
): Promise<SimDisk> {
  for (let run = 0; run < count; run++) {
    const next = await processOn(disk.afterKill(), store);
    for (let second = 0; second < seconds; second++) await next.tickAfter(1_000);
    if (!isKilled) await next.stop();
    disk = next.disk;
  }
  return disk;
}

for (const [ended, seconds, isKilled] of [
  ["killed", 15, true],
  ["stopped", 5, false],
] as const) {
  test(`processes that are ${ended} again and again, and receive nothing, together verify a charge twice`, async () => {
    const store = new ForgetfulStore();
    const first = await processOn(new SimDisk(), store);
    await first.charge(1);
    const [early, rest] = [Math.floor(450 / seconds), Math.ceil(465 / seconds)];
    const disk = await shortProcesses({ disk: first.disk, store }, { count: early, seconds, isKilled });
    assert.deepEqual(store.looked, [idOf(1)]);
    await shortProcesses({ disk, store }, { count: rest, seconds, isKilled });
    assert.deepEqual(store.looked, [idOf(1), idOf(1)]);
  });
}

test("records are kept for a day and no longer, whatever the clock says", async () => {
  const store = new ForgetfulStore();
  const { disk, clock, journal, charge, tickAfter } = await processOn(new SimDisk(), store);
  for (let number = 1; number <= 60; number++) await charge(number);
  await tickAfter(30_000);
  await tickAfter(600_000);
  const before = disk.segments();
  assert.ok(before.length > 4);
  clock.wallAheadMs += 25 * HOUR_MS;
  await tickAfter(1_000);
  assert.deepEqual(disk.segments(), before);
  clock.wallAheadMs -= YEARS_MS;
  await tickAfter(24 * HOUR_MS);
  assert.ok(disk.segments().length < 4, `${disk.segments()}`);
  await journal.close();
});

const AHEAD_MS = BOOT_WALL_MS + YEARS_MS;
/** When the first charge was made and acknowledged, and the segment and the time of the second one. */
const EARLIER = [
  ["two charges of one segment", AHEAD_MS, AHEAD_MS, 1],
  ["the charges of two segments", AHEAD_MS, AHEAD_MS, 2],
  ["a charge and its acknowledgement", AHEAD_MS, BOOT_WALL_MS, 1],
] as const;

for (const [between, finalAtMs, ackAtMs, segment] of EARLIER) {
  test(`records of earlier versions, whose clock was set back ten years between ${between}, neither wait for a date to come nor count as old`, async () => {
    const store = new ForgetfulStore();
    const disk = new SimDisk();
    const frames = (number: number, finalMs: number, ackMs: number) => [
      frameOf(RECORD.final, finalMs, encodeCharge(askOf(number), {})),
      frameOf(RECORD.ack, ackMs, encodeAck({ id: idOf(number), outcome: "settled" })),
    ];
    const [first, second] = [frames(1, finalAtMs, ackAtMs), frames(2, BOOT_WALL_MS, BOOT_WALL_MS)];
    disk.put(segmentName(1), Buffer.concat(segment === 1 ? [...first, ...second] : first));
    if (segment === 2) disk.put(segmentName(2), Buffer.concat(second));
    for (const number of [1, 2]) await store.settle(askOf(number));
    const { journal, tickAfter, lookedAfter } = await processOn(disk, store);
    assert.equal(await lookedAfter(29_000), 0);
    assert.equal(await lookedAfter(1_000), 1);
    assert.equal(await lookedAfter(570_000), 2);
    assert.deepEqual(store.looked, [1, 2, 1, 2].map(idOf));
    await tickAfter(23 * HOUR_MS);
    assert.ok(disk.segments().includes(segmentName(segment)));
    await tickAfter(HOUR_MS);
    assert.ok(!disk.segments().includes(segmentName(segment)));
    await journal.close();
  });
}

test("a process that resumes after records of earlier versions does not verify younger ones too early", async () => {
  const store = new ForgetfulStore();
  const disk = new SimDisk();
  const place = { segment: 2, offset: 0 };
  const progress = encode({ verified: [place, place], identity: "one", sureAtMs: BOOT_WALL_MS });
  for (const [at, atMs] of [BOOT_WALL_MS + YEARS_MS, BOOT_WALL_MS].entries()) {
    const number = at + 1;
    const frames = [
      frameOf(RECORD.final, atMs, encodeCharge(askOf(number), {})),
      frameOf(RECORD.ack, atMs, encodeAck({ id: idOf(number), outcome: "settled" })),
      frameOf(RECORD.note, atMs, progress),
    ];
    disk.put(segmentName(number), Buffer.concat(frames));
    await store.settle(askOf(number));
  }
  const { journal, tickAfter } = await processOn(disk, store);
  await tickAfter(29_000);
  assert.deepEqual(store.looked, []);
  await tickAfter(1_000);
  assert.deepEqual(store.looked, [idOf(2)]);
  await tickAfter(570_000);
  assert.deepEqual(store.looked, [2, 2].map(idOf));
  await journal.close();
});
