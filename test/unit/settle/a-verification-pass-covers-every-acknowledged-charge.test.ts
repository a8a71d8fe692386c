/**
 * docs/failure-model.md invariant 33: a pass of verification hands over every acknowledged charge, however often the store is
 * unreachable meanwhile. Charges come after the writes that they need.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { VerifyPass } from "../../../src/settle/journal/pass.ts";
import type { PlacedCharge } from "../../../src/settle/journal/set-aside.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { SETTLED_IDS_MAX } from "../../../src/store/settlement.ts";
import { Records } from "./records.ts";
import { ManualClock } from "./rig.ts";

const DELAY_MS = 30_000;

function bench(records: Records) {
  const clock = new ManualClock();
  const got: string[] = [];
  const batches: number[] = [];
  const store = { away: false };
  const demandStore = () => {
    if (store.away) throw new StoreError("unavailable", "away");
  };
  const pass = new VerifyPass(
    {
      log: { segments: () => records.segments(), read: (...place) => records.read(...place), nowMs: () => clock.nowMs },
      delayMs: DELAY_MS,
      async verify(charges: readonly PlacedCharge[]) {
        demandStore();
        batches.push(charges.length);
        got.push(...charges.map(({ charge }) => String(Number.parseInt(charge.requestId, 16))));
      },
      async verifyAdmin({ id }) {
        demandStore();
        got.push(id);
      },
    },
    { segment: 0, offset: 0 },
  );
  return { clock, got, batches, store, pass };
}

test("a charge whose ACK fell due while the store was unreachable is handed over afterwards, though its FINAL was read long before", async () => {
  const clock = new ManualClock();
  const records = new Records().final(1, clock.nowMs);
  const { got, store, pass, clock: now } = bench(records);
  await pass.step();
  records.ack(1, clock.nowMs);
  store.away = true;
  await now.advance(DELAY_MS);
  await assert.rejects(pass.step(), StoreError);
  store.away = false;
  await pass.step();
  assert.deepEqual(got, ["1"]);
});

test("charges and writes are handed over in their order, each when it is due", async () => {
  const { nowMs } = new ManualClock();
  const records = new Records().charge(1, nowMs).charge(2, nowMs).admin("topup", nowMs).charge(3, nowMs);
  const { got, batches, clock, pass } = bench(records.admin("later", nowMs + 1).charge(4, nowMs + 1));
  await pass.step();
  assert.deepEqual(got, []);
  await clock.advance(DELAY_MS);
  await pass.step();
  assert.deepEqual(got, ["1", "2", "topup", "3"]);
  assert.deepEqual(batches, [2, 1]);
  await clock.advance(1);
  await pass.step();
  assert.deepEqual(got.slice(4), ["later", "4"]);
});

test("a write without charges waits until it is due", async () => {
  const { nowMs } = new ManualClock();
  const { got, clock, pass } = bench(new Records().admin("topup", nowMs));
  await pass.step();
  assert.deepEqual(got, []);
  await clock.advance(DELAY_MS);
  await pass.step();
  assert.deepEqual(got, ["topup"]);
});

test("a charge that became a dead letter is not handed over", async () => {
  const { nowMs } = new ManualClock();
  const { got, clock, pass } = bench(new Records().final(1, nowMs).ack(1, nowMs, "dead").charge(2, nowMs));
  await clock.advance(DELAY_MS);
  await pass.step();
  assert.deepEqual(got, ["2"]);
});

test("no more charges are handed over at once than one lookup takes", async () => {
  const { nowMs } = new ManualClock();
  const records = new Records();
  for (let number = 1; number <= SETTLED_IDS_MAX + 1; number++) records.charge(number, nowMs);
  const { batches, clock, pass } = bench(records);
  await clock.advance(DELAY_MS);
  await pass.step();
  assert.deepEqual(batches, [SETTLED_IDS_MAX, 1]);
});

test("a record is not older than the one before it, even if its time says so", async () => {
  const { nowMs } = new ManualClock();
  const { got, clock, pass } = bench(new Records().charge(1, nowMs).charge(2, nowMs - 3_600_000));
  await clock.advance(DELAY_MS - 1);
  await pass.step();
  assert.deepEqual(got, []);
  await clock.advance(1);
  await pass.step();
  assert.deepEqual(got, ["1", "2"]);
});

test("the journal is not read between two due times", async () => {
  const { nowMs } = new ManualClock();
  const records = new Records().charge(1, nowMs);
  let reads = 0;
  const read = records.read.bind(records);
  records.read = (...place) => {
    reads++;
    return read(...place);
  };
  const { clock, pass } = bench(records);
  await pass.step();
  const first = reads;
  for (let second = 1; second < DELAY_MS / 1_000; second++) {
    await clock.advance(1_000);
    await pass.step();
  }
  assert.equal(reads, first);
});
