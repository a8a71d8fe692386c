/** What is remembered of a key above its requests per minute (src/admit/seen-keys.ts). */
import assert from "node:assert/strict";
import test from "node:test";
import { createSeenKeys } from "../../../src/admit/seen-keys.ts";
import type { AdmitRefused } from "../../../src/store/admission.ts";
import { hashKey } from "../../../src/values/key.ts";

const KEY = hashKey("sk-one");

function refused(cause: AdmitRefused["cause"], retryAfterMs: number): AdmitRefused {
  const limits = {
    requests: { limit: 2, remaining: 0, resetMs: 60_000 },
    tokens: { limit: 100, remaining: 7, resetMs: 40 },
  };
  return { outcome: "refused", cause, group: "g", retryAfterMs, limits };
}

function memory() {
  let nowMs = 5_000;
  const seen = createSeenKeys({ monotonicMs: () => nowMs });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { seen, pass };
}

test("the time to wait goes down, and what is left of the limits is told as of now", () => {
  const { seen, pass } = memory();
  seen.noteLimited(KEY, refused("requests", 30_000));
  pass(100);
  const known = seen.limited(KEY);
  assert.equal(known?.retryAfterMs, 29_900);
  assert.deepEqual(known?.limits.requests, { limit: 2, remaining: 0, resetMs: 59_900 });
  assert.equal(known?.limits.tokens?.resetMs, 0, "never below nothing");
  assert.equal(seen.limited(hashKey("sk-other")), undefined);
});

test("a quarter of a second later the store is asked, and at once where the wait is over before", () => {
  const { seen, pass } = memory();
  seen.noteLimited(KEY, refused("requests", 30_000));
  pass(249);
  assert.ok(seen.limited(KEY));
  pass(2);
  assert.equal(seen.limited(KEY), undefined);
  seen.noteLimited(KEY, refused("requests", 100));
  pass(99);
  assert.equal(seen.limited(KEY)?.retryAfterMs, 1);
  pass(1);
  assert.equal(seen.limited(KEY), undefined);
});

test("a refusal that hangs on the request is not remembered", () => {
  const { seen } = memory();
  for (const cause of ["tokens", "concurrency", "insufficient_balance"] as const) {
    seen.noteLimited(KEY, refused(cause, 30_000));
    assert.equal(seen.limited(KEY), undefined, cause);
  }
});
