/**
 * docs/failure-model.md invariant 36: when another server answers, charges are sent again from the newest back to one that
 * proves that nothing older is missing. A proof that is accepted too early loses a charge for good.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { giveBack, SENT_AT_ONCE, type Verified } from "../../../src/settle/journal/give-back.ts";
import type { PlacedCharge } from "../../../src/settle/journal/set-aside.ts";
import { Records } from "./records.ts";
import { askOf, idOf, ManualClock, openOn } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const SECOND_MS = 1_000;
/** When the charges of these tests begin. */
const START_MS = 1_000_000;
const at = (seconds: number): number => START_MS + seconds * SECOND_MS;

interface Walk {
  /** The time in seconds until which the previous server is known to have answered; the default is later than every record. */
  readonly since?: number;
  readonly lost?: readonly number[];
  readonly isWhole?: boolean;
  readonly shardOf?: () => string;
}

/** @returns the numbers of the charges that were sent, the administrative writes, and the segments that were read. */
async function walk(records: Records, { since = 1_000_000, lost = [], isWhole = false, shardOf }: Walk = {}) {
  const sent: number[] = [];
  const writes: string[] = [];
  const read: number[] = [];
  const log = {
    segments: () => records.segments(),
    read(segment: number, offset: number, bytes: number) {
      read.push(segment);
      return records.read(segment, offset, bytes);
    },
  };
  await giveBack(at(since), {
    log,
    shardOf,
    isWhole,
    async verify({ charge }: PlacedCharge): Promise<Verified> {
      const number = Number.parseInt(charge.requestId, 16);
      sent.push(number);
      return lost.includes(number) ? "restored" : "present";
    },
    verifyAdmin: async ({ id }) => void writes.push(id),
  });
  return { sent, writes, read };
}

/** Charges one second apart, from 1; each segment has as many as are sent at once. */
function seconds(count: number): Records {
  const records = new Records();
  for (let number = 1; number <= count; number++) {
    records.charge(number, at(number));
    if (number % SENT_AT_ONCE === 0) records.next();
  }
  return records;
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const sorted = (some: readonly number[]) => some.toSorted((left, right) => left - right);

test("a charge that is present ends the walk, and no older segment is read for charges", async () => {
  const { sent, read } = await walk(seconds(4 * SENT_AT_ONCE));
  assert.deepEqual(sorted(sent), numbers(3 * SENT_AT_ONCE + 1, 4 * SENT_AT_ONCE));
  // First all segments for the writes; then from the end, where the last segment is empty.
  assert.deepEqual(read, [1, 2, 3, 4, 5, 5, 4]);
});

test("a charge that was acknowledged after the previous server last answered proves nothing", async () => {
  const { sent } = await walk(seconds(4 * SENT_AT_ONCE), { since: SENT_AT_ONCE });
  assert.deepEqual(sorted(sent), numbers(1, 4 * SENT_AT_ONCE));
});

test("a present charge proves nothing if it is newer than a lost one or older by less than the clock tolerance", async () => {
  const newest = 4 * SENT_AT_ONCE;
  const first = 3 * SENT_AT_ONCE + 1;
  for (const [lost, from] of [
    // The clock tolerance is five seconds.
    [first + 5, first - SENT_AT_ONCE],
    [first + 6, first],
  ] as const) {
    const { sent } = await walk(seconds(newest), { lost: numbers(lost, newest) });
    assert.deepEqual(sorted(sent), numbers(from, newest), `lost from ${lost} on`);
  }
});

test("after a whole loss everything is sent again, whichever charges are present", async () => {
  const { sent } = await walk(seconds(3 * SENT_AT_ONCE), { isWhole: true });
  assert.deepEqual(sorted(sent), numbers(1, 3 * SENT_AT_ONCE));
});

test("a charge proves only the past of its own server, and the walk continues for the other servers", async () => {
  const records = seconds(3 * SENT_AT_ONCE);
  const { read } = await walk(records, { shardOf: () => "one" });
  assert.deepEqual(read, [1, 2, 3, 4, 4, 3, 2, 1]);
});

test("a charge proves what was acknowledged before it was made, and not before it was acknowledged", async () => {
  // 2 is acknowledged while 1 is in flight: whether the store had it before 1 is unknown.
  const records = new Records().final(2, at(5)).next().final(1, at(10)).ack(2, at(20)).ack(1, at(30));
  assert.deepEqual(sorted((await walk(records)).sent), [1, 2]);
});

test("an old charge that was acknowledged late is still sent", async () => {
  const records = new Records().final(1, at(0)).next();
  for (let number = 2; number <= 2 * SENT_AT_ONCE; number++) records.charge(number, at(number));
  records.ack(1, at(100));
  assert.ok((await walk(records)).sent.includes(1));
});

test("the newest ACK of a charge says when the store had it", async () => {
  // A charge given back at 40 is as new as that: it proves nothing when the previous server is known to have answered until 30.
  const records = new Records().charge(1, at(0)).next().charge(2, at(10)).next().ack(2, at(40));
  assert.deepEqual(sorted((await walk(records, { since: 30 })).sent), [1, 2]);
});

test("a charge that became a dead letter is not sent", async () => {
  const records = new Records().final(1, at(0)).ack(1, at(0), "dead").charge(2, at(1));
  assert.deepEqual((await walk(records, { isWhole: true })).sent, [2]);
});

test("when the clock was set back, times prove nothing and all charges are sent", async () => {
  const back = new Records().charge(1, at(0)).next().charge(2, at(100)).charge(3, at(0)).next().charge(4, at(90));
  assert.deepEqual(sorted((await walk(back, { since: 80 })).sent), [1, 2, 3, 4]);
  // What was proven until then no longer counts; 1 is acknowledged last, so that the walk reaches its FINAL.
  const proven = new Records().charge(4, at(5)).final(1, at(6)).next().charge(2, at(100)).next();
  proven.charge(3, at(10)).ack(1, at(15));
  assert.deepEqual(sorted((await walk(proven, { since: 80 })).sent), [1, 2, 3, 4]);
  const inSteps = new Records().charge(1, at(-1)).next().charge(2, at(8)).charge(3, at(4)).charge(4, at(0));
  assert.deepEqual(sorted((await walk(inSteps)).sent), [1, 2, 3, 4]);
});

test("clock disorder within the tolerance changes nothing", async () => {
  const records = new Records().charge(1, at(0)).next().charge(2, at(12)).charge(3, at(10)).charge(4, at(20));
  assert.deepEqual(sorted((await walk(records)).sent), [2, 3, 4]);
});

test("administrative writes of all segments are repeated in their original order before any charge", async () => {
  const records = new Records()
    .admin("account", at(0))
    .charge(1, at(1))
    .admin("topup", at(2))
    .next()
    .admin("key", at(3));
  const { writes } = await walk(records);
  assert.deepEqual(writes, ["account", "topup", "key"]);
});

test("a charge that was given back counts as acknowledged at that time, however old it is", async () => {
  const clock = new ManualClock();
  const { journal, log } = await openOn(new SimDisk(), clock);
  // The first and the last charge are in different segments.
  for (const number of numbers(1, 40)) {
    const final = journal.final(askOf(number));
    await clock.advance(5);
    await final;
    journal.ack(idOf(number), "settled");
    await clock.advance(10_000);
  }
  log.restored(idOf(1));
  await clock.advance(10_000);
  const sent: string[] = [];
  const verify = async ({ charge }: PlacedCharge): Promise<Verified> => {
    sent.push(charge.requestId);
    return charge.requestId === idOf(1) ? "restored" : "present";
  };
  await giveBack(clock.nowMs, { log, verify, verifyAdmin: async () => {}, shardOf: undefined, isWhole: false });
  assert.ok(sent.length < 40, "the walk stops before the oldest charge");
  assert.ok(sent.includes(idOf(1)), "the charge is sent again, since the server may have lost it again");
  await journal.close();
});
