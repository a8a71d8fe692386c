/** docs/failure-model.md rows 65 and C5: no upstream makes the reader buffer or search more than the limit of one frame. */
import assert from "node:assert/strict";
import test from "node:test";
import { SSE_EVENT_BYTES_MAX, SseReader } from "../../../src/wire/sse.ts";
import { framesOf } from "./frames.ts";

test("a 40 MB line in 16 KB chunks overflows at the limit: earlier frames are returned, and none after it", () => {
  const reader = new SseReader();
  assert.equal(reader.push(Buffer.from("data: before\n\n")).length, 1);
  const chunk = Buffer.alloc(16_384, "a");
  let pushed = 0;
  while (!reader.overflowed && pushed < 40_000_000) {
    assert.deepEqual(reader.push(chunk), []);
    pushed += chunk.length;
  }
  assert.equal(reader.overflowed, true);
  assert.equal(pushed, SSE_EVENT_BYTES_MAX + chunk.length);
  assert.deepEqual(reader.push(Buffer.from("\n\ndata: after\n\n")), []);
  assert.deepEqual(reader.end(), []);
});

test("a frame of exactly the limit passes, one byte more does not", () => {
  const frame = (bytes: number) => Buffer.from(`data:${"x".repeat(bytes - 7)}\n\n`);
  for (const cuts of [1, 2, 7]) {
    const chunks = (bytes: Buffer) =>
      Array.from({ length: cuts }, (_, i) =>
        bytes.subarray(Math.floor((i * bytes.length) / cuts), Math.floor(((i + 1) * bytes.length) / cuts)),
      );
    assert.equal(framesOf(chunks(frame(100)), 100).frames.length, 1);
    assert.deepEqual(framesOf(chunks(frame(101)), 100), { frames: [], overflowed: true });
  }
});

test("a whole event that is too large inside one chunk overflows as well", () => {
  const reader = new SseReader(64);
  const events = reader.push(Buffer.from(`data: 1\n\ndata: ${"x".repeat(64)}\n\ndata: 3\n\n`));
  assert.deepEqual([events.length, reader.overflowed], [1, true]);
});

test("an unfinished frame of a million one-byte chunks keeps no chunk in memory", () => {
  const reader = new SseReader();
  const before = process.memoryUsage();
  // Each byte is a view of 16 KB that would stay in memory if the reader kept the view: 16 GB in all.
  for (let i = 0; i < 1_000_000; i++) reader.push(new Uint8Array(new ArrayBuffer(16_384), 0, 1).fill(0x61));
  const after = process.memoryUsage();
  assert.equal(reader.overflowed, false);
  assert.equal(reader.end()[0]?.raw.length, 1_000_000);
  const grownMb = (after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed) / 1e6;
  assert.ok(grownMb < 1_000, `grew by ${grownMb} MB`);
});

test("10 MB in 16 KB chunks with a larger limit are returned in full", () => {
  const reader = new SseReader(20_000_000);
  const chunk = Buffer.alloc(16_384, "a");
  reader.push(Buffer.from("data:"));
  for (let i = 0; i < 640; i++) assert.equal(reader.push(chunk).length, 0);
  const [event, ...none] = reader.push(Buffer.from("\n\n"));
  assert.equal(none.length, 0);
  assert.equal(event?.data?.length, 640 * 16_384);
});

test("a million tiny events, comments and lone blank lines are read", () => {
  const reader = new SseReader();
  const counted = { data: 0, other: 0, rawBytes: 0 };
  const chunk = Buffer.from("data:\n\n:\n\n\ndata: x\n\n".repeat(1_000));
  for (let i = 0; i < 250; i++) {
    for (const event of reader.push(chunk)) {
      counted[event.data === undefined ? "other" : "data"]++;
      counted.rawBytes += event.raw.length;
    }
  }
  assert.deepEqual(counted, { data: 500_000, other: 500_000, rawBytes: 250 * chunk.length });
});
