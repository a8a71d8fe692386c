import assert from "node:assert/strict";
import test from "node:test";
import { NO_USAGE, plausibleCount, plausibleTotalInput, totalInput } from "../../../src/values/tokens/usage.ts";

const MOST = 1_000_000_000;

test("the input of an attempt may be the largest count of each of its kinds, and no more", () => {
  assert.deepEqual([plausibleCount(MOST), plausibleCount(MOST + 1)], [MOST, undefined]);
  const every = { ...NO_USAGE, input: MOST, cachedInput: MOST, cacheWrite: MOST, cacheWrite1h: MOST };
  assert.equal(plausibleTotalInput(totalInput(every)), totalInput(every));
  for (const other of [totalInput(every) + 1, -1, 0.5, "1", null]) assert.equal(plausibleTotalInput(other), undefined);
});
