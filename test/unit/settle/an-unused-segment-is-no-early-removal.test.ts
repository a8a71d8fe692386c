/**
 * The journal warns if it must remove acknowledged records before they were verified twice, because these could not be
 * restored to a store that loses them. A segment without records is removed without a warning.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { judge } from "../../../src/settle/journal/segments.ts";

test("the removal of an unverified segment is early if it was used, and not if it is empty", () => {
  const judged = (used: boolean) => {
    const segments = [1, 2].map((number) => ({ number, bytes: 80, end: 80, lastAtMs: 0, used }));
    const facts = { segments, writing: 2, verifiedBefore: 1, live: [], nowMs: 0, bytesTotal: 160, bytesMax: 200 };
    const { remove, early } = judge(facts);
    return [remove.map(({ number }) => number), early];
  };
  assert.deepEqual(judged(true), [[1], true]);
  assert.deepEqual(judged(false), [[1], false]);
});
