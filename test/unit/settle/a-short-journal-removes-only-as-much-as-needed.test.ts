/** While the journal is short of room, acknowledged records are removed early, but no more of them than necessary. */
import assert from "node:assert/strict";
import test from "node:test";
import { judge, PRESSURE_RATIO, type Segment } from "../../../src/settle/journal/segments.ts";

const SEGMENT_BYTES = 10;
const BYTES_MAX = 100;

/** Ten used segments, the last of which is being written; whether they are verified, and how old they are. */
function judged(bytesMore: number, { verified = true, nowMs = 0 } = {}) {
  const segments: Segment[] = Array.from({ length: 10 }, (_, at) => ({
    ...{ number: at + 1, bytes: SEGMENT_BYTES, end: SEGMENT_BYTES, lastAtMs: 0, used: true },
  }));
  const { remove, early } = judge({
    ...{ segments, writing: 10, verifiedBefore: verified ? 10 : 1, live: [], nowMs },
    ...{ bytesTotal: segments.length * SEGMENT_BYTES + bytesMore, bytesMax: BYTES_MAX + bytesMore },
  });
  return { removed: remove.map(({ number }) => number), early };
}

test("each removed segment counts as free room", () => {
  assert.equal(PRESSURE_RATIO, 0.7);
  assert.deepEqual(judged(0), { removed: [1, 2, 3], early: false });
  assert.deepEqual(judged(0, { verified: false }), { removed: [1, 2, 3], early: true });
  // A spare segment takes part of the room.
  assert.deepEqual(judged(SEGMENT_BYTES).removed, [1, 2, 3, 4]);
});

test("segments that are a day old are removed even if there is room", () => {
  assert.deepEqual(judged(0, { nowMs: 24 * 3_600_000 }).removed, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
});
