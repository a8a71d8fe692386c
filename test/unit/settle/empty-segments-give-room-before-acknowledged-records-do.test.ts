/**
 * Each start of a process leaves a segment. Those without records are removed in any case, so acknowledged records are
 * only given up if room is short without them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { judge } from "../../../src/settle/journal/segments.ts";

/** A verified segment with records, by default the first, empty ones, and the one being written, of 10 bytes each. */
function judged(emptyCount: number, bytesMax: number, usedAt = 0) {
  const segments = Array.from({ length: emptyCount + 2 }, (_, at) => ({
    ...{ number: at + 1, bytes: 10, end: 10, lastAtMs: 0, used: at === usedAt },
  }));
  const bytesTotal = segments.length * 10;
  const writing = segments.length;
  const { remove } = judge({ segments, writing, verifiedBefore: writing, live: [], nowMs: 0, bytesTotal, bytesMax });
  return remove.map(({ number }) => number);
}

test("acknowledged records stay if the empty segments after them give enough room", () => {
  assert.deepEqual(judged(3, 40), [2, 3, 4]);
});

test("acknowledged records are removed as well if that is not enough", () => {
  assert.deepEqual(judged(3, 28), [1, 2, 3, 4]);
  assert.deepEqual(judged(3, 28, 3), [1, 2, 3, 4], "each empty segment gives its room once");
});
