/**
 * docs/failure-model.md row 30: failures are counted by the minute. An address that goes on guessing keys after its first
 * minute is limited in each of the following ones, too.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { FAILED_KEY_LIMITS, FailedKeys } from "../../../src/accept/failed-keys.ts";

test("an address is over its limit in every minute in which it fails more than 20 times", () => {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs, wallMs: () => clock.nowMs, after: () => () => {} };
  const failed = new FailedKeys(clock);
  for (let minute = 0; minute < 4; minute++) {
    clock.nowMs = minute * 90_000;
    for (let i = 0; i < FAILED_KEY_LIMITS.failuresPerMinute; i++)
      assert.equal(failed.failed("1.1.1.1"), undefined, `minute ${minute}`);
    clock.nowMs += 10_000;
    assert.equal(failed.failed("1.1.1.1"), 50, `minute ${minute}`);
  }
});
