import assert from "node:assert/strict";
import test from "node:test";
import { FailedKeys } from "../../../src/accept/failed-keys.ts";
import type { Clock } from "../../../src/values/time.ts";

/** A clock that stays where it is set. */
function standingClock(): Clock & { nowMs: number } {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs, wallMs: () => clock.nowMs, after: () => () => {} };
  return clock;
}

test("row 30: after 20 failures in a minute an address has to wait until the minute is over", () => {
  const clock = standingClock();
  const failed = new FailedKeys(clock);
  for (let i = 0; i < 20; i += 1) assert.equal(failed.failed("1.1.1.1"), undefined);
  clock.nowMs = 20_000;
  assert.equal(failed.failed("1.1.1.1"), 40);
  assert.equal(failed.failed("2.2.2.2"), undefined, "another address is not blocked");
  clock.nowMs = 60_000;
  assert.equal(failed.failed("1.1.1.1"), undefined);
});

test("row 30: asking for the wait counts as no failure, and there is no wait after the minute", () => {
  const clock = standingClock();
  const failed = new FailedKeys(clock);
  for (let i = 0; i < 20; i += 1) failed.failed("1.1.1.1");
  for (let i = 0; i < 3; i += 1) assert.equal(failed.waitS("1.1.1.1"), undefined);
  failed.failed("1.1.1.1");
  assert.deepEqual(
    [failed.waitS("1.1.1.1"), failed.waitS("2.2.2.2"), failed.waitS(undefined)],
    [60, undefined, undefined],
  );
  clock.nowMs = 59_999;
  assert.equal(failed.waitS("1.1.1.1"), 1);
  clock.nowMs = 60_000;
  assert.equal(failed.waitS("1.1.1.1"), undefined);
  assert.equal(failed.size, 1, "an address without a failure is not stored");
});

test("row 30: without a trustworthy address there is no limit", () => {
  const failed = new FailedKeys(standingClock());
  for (let i = 0; i < 100; i += 1) assert.equal(failed.failed(undefined), undefined);
  assert.equal(failed.mayLookUp(undefined), true);
  assert.equal(failed.size, 0);
});

test("row 30: an address above its limit may look up at most 50 keys a second; below it there is no limit", () => {
  const clock = standingClock();
  const failed = new FailedKeys(clock);
  for (let i = 0; i < 21; i += 1) failed.failed("1.1.1.1");
  const allowed = () => Array.from({ length: 80 }, () => failed.mayLookUp("1.1.1.1")).filter(Boolean).length;
  assert.equal(allowed(), 50);
  clock.nowMs = 1_000;
  assert.equal(allowed(), 50);
  clock.nowMs = 61_000;
  assert.equal(allowed(), 80);
});

test("a flood of addresses evicts those seen least recently", () => {
  const failed = new FailedKeys(standingClock(), { failuresPerMinute: 1, lookUpsPerSecond: 50, addressesMax: 10 });
  for (let i = 0; i < 1_000; i += 1) {
    failed.failed(`1.1.${i >> 8}.${i & 255}`);
    failed.failed("9.9.9.9");
  }
  assert.equal(failed.size, 10);
  assert.notEqual(failed.failed("9.9.9.9"), undefined);
});

test("the addresses of one IPv6 network share a count", () => {
  const failed = new FailedKeys(standingClock());
  for (let i = 1; i <= 20; i += 1) failed.failed(`2001:db8:1:2:${i}:${i}:${i}:${i}`);
  assert.notEqual(failed.failed("2001:db8:1:2::1"), undefined);
  assert.equal(failed.failed("2001:db8:1:3::1"), undefined);
});
