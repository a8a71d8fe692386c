/**
 * docs/failure-model.md row F3: flipped bits, zeroed pages, truncated files, duplicated tails, foreign files. The journal never
 * stops silently.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { RECORD } from "../../../src/settle/journal/frame.ts";
import { scan } from "../../../src/settle/journal/segments.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { frameOf } from "./records.ts";
import { askOf, idOf, ManualClock, openOn, seeded, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const COUNT = 60;

/** A journal of several segments in which requests 1 to COUNT have their FINAL and no ACK. */
async function written(): Promise<SimDisk> {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock, { bytesMax: 32 * 8_192 });
  for (let number = 1; number <= COUNT; number++) {
    journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
    const final = journal.final(askOf(number));
    await clock.advance(2);
    await final;
  }
  await journal.close();
  return disk.afterKill();
}

async function reopened(disk: SimDisk) {
  const { leftovers, alarms, journal } = await openOn(disk, new ManualClock(), { bytesMax: 32 * 8_192 });
  await journal.close();
  const amounts = leftovers.filter(({ final }) => final).map(({ ask }) => ask.amount);
  return { leftovers, alarms, finals: new Set(amounts) };
}

test("an undamaged journal raises no alarm and every charge is read back", async () => {
  const { leftovers, alarms } = await reopened(await written());
  assert.deepEqual(alarms, []);
  const expected = Array.from({ length: COUNT }, (_, index) => askOf(index + 1));
  assert.deepEqual(
    leftovers.map(({ ask }) => ask),
    expected,
  );
});

test("a flipped bit costs only the record that contains it, and raises an alarm", async () => {
  const clean = await written();
  const random = seeded(7);
  for (let round = 0; round < 60; round++) {
    const disk = clean.afterKill();
    const names = disk.segments();
    const name = names[Math.floor(random() * (names.length - 1))] as string;
    const bytes = disk.bytesOf(name);
    const at = Math.floor(random() * scan(bytes).end);
    bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(random() * 8));
    const { alarms, finals, leftovers } = await reopened(disk);
    assert.equal(alarms.length, 1, `${name} byte ${at}: ${alarms}`);
    assert.match(alarms[0] as string, /is damaged/);
    assert.ok(finals.size >= COUNT - 1);
    assert.ok(leftovers.length >= COUNT - 1);
  }
});

test("a zeroed page in the middle hides no later record", async () => {
  const disk = await written();
  disk.bytesOf(disk.segments()[1] as string).fill(0, 1_024, 2_048);
  const { alarms, finals } = await reopened(disk);
  assert.equal(alarms.length, 1);
  assert.ok(finals.size >= COUNT - 5 && finals.size < COUNT);
});

test("a zeroed or truncated end of an earlier segment is noticed by the header of the next one", async () => {
  for (const cut of ["zeroed", "truncated"] as const) {
    const disk = await written();
    const name = disk.segments()[1] as string;
    const bytes = disk.bytesOf(name);
    const end = scan(bytes).end;
    if (cut === "zeroed") bytes.fill(0, end - 1_500);
    else disk.put(name, bytes.subarray(0, end - 1_500));
    const { alarms, finals } = await reopened(disk);
    assert.equal(alarms.length, 1, cut);
    assert.match(alarms[0] as string, /its records end at byte/);
    assert.ok(finals.size < COUNT);
  }
});

test("a torn end of the last segment, which a crash leaves, raises no alarm at this or any later start", async () => {
  const disk = await written();
  const name = disk.segments().at(-1) as string;
  const bytes = disk.bytesOf(name);
  const { frames, end } = scan(bytes);
  bytes.fill(0, end - 20);
  const first = await reopened(disk);
  assert.deepEqual(first.alarms, []);
  assert.equal(first.finals.size, COUNT - 1);
  assert.equal(frames.at(-1)?.type, RECORD.final);
  assert.deepEqual((await reopened(disk)).alarms, []);
});

test("a duplicated tail changes nothing", async () => {
  const disk = await written();
  const name = disk.segments().at(-1) as string;
  const bytes = disk.bytesOf(name);
  const { frames, end } = scan(bytes);
  const tail = frames.slice(-3)[0]?.from as number;
  bytes.copy(bytes, end, tail, end);
  const { alarms, leftovers } = await reopened(disk);
  assert.deepEqual(alarms, []);
  assert.equal(leftovers.length, COUNT);
});

test("a charge repeated after its own ACK is settled again, which the store recognises as a duplicate", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock);
  const final = journal.final(askOf(1));
  await clock.advance(2);
  await final;
  journal.ack(idOf(1), "settled");
  await journal.close();
  const bytes = disk.bytesOf(disk.segments()[0] as string);
  const { frames, end } = scan(bytes);
  const { from, end: to } = frames[1] as (typeof frames)[number];
  bytes.copy(bytes, end, from, to);
  assert.equal((await reopened(disk)).leftovers.length, 1);
});

test("foreign files are reported and left alone", async () => {
  const disk = await written();
  disk.put("notes.txt", Buffer.from("hello"));
  disk.put("journal-0000000099.seg", Buffer.from("not a journal, whatever its name says"));
  disk.put("journal.lock", Buffer.alloc(0));
  const { alarms, finals } = await reopened(disk);
  assert.deepEqual(alarms.sort(), [
    "journal-0000000099.seg has no journal records; it is ignored",
    "notes.txt is not a journal file; it is ignored",
  ]);
  assert.equal(finals.size, COUNT);
  assert.ok(disk.files.has("notes.txt") && disk.files.has("journal-0000000099.seg"));
});

test("an unreadable record is reported", async () => {
  const disk = await written();
  const bytes = disk.bytesOf(disk.segments().at(-1) as string);
  frameOf(RECORD.final, 1, '{"ask":{"amount":"-1"}}').copy(bytes, scan(bytes).end);
  const { alarms, finals } = await reopened(disk);
  assert.match(alarms[0] as string, /an unreadable record/);
  assert.equal(finals.size, COUNT);
});

test("a journal of a later version is refused and not changed", async () => {
  const disk = await written();
  const bytes = disk.bytesOf(disk.segments().at(-1) as string);
  const frame = frameOf(RECORD.open, 1, "{}");
  const later = laterVersion(frame);
  later.copy(bytes, scan(bytes).end);
  await assert.rejects(reopened(disk), /the journal has records of version 2/);
});

/** A frame whose version is 2 and whose checksum is right. */
function laterVersion(frame: Buffer): Buffer {
  const changed = Buffer.from(frame);
  changed[4] = 2;
  changed.writeUInt32BE(crc(changed), 18);
  return changed;
}

function crc(frame: Buffer): number {
  let value = ~0;
  for (const byte of [...frame.subarray(4, 18), ...frame.subarray(22)]) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value >>> 0;
}
