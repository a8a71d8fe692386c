/** docs/failure-model.md row D8, computed from numbers alone. */
import assert from "node:assert/strict";
import test from "node:test";
import { sharesOf } from "../../../src/accept/descriptors.ts";

test("row D8: connections get half of the descriptors, and enough are left for everything else", () => {
  for (const limit of [256, 1_024, 65_536]) {
    const { connectionsMax, overflowMax, upstreamMax } = sharesOf(limit);
    assert.ok(connectionsMax < limit / 2);
    assert.ok(connectionsMax > limit * 0.3, `${connectionsMax} of ${limit}`);
    assert.ok(connectionsMax + overflowMax + upstreamMax + 64 <= limit);
  }
});
