/** A flooding key above its requests per minute is refused from memory (src/admit/seen-keys.ts). */
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
  const flood = (waitMs: number, times = 20, bytes = 2_000): void => {
    for (let i = 0; i < times; i++) seen.noteLimited(KEY, refused("requests", waitMs), bytes);
  };
  return { seen, pass, flood };
}

test("a refusal from memory gives the remaining wait and the limits' resets as of now", () => {
  const { seen, pass, flood } = memory();
  flood(30_000);
  pass(100);
  const known = seen.limited(KEY);
  assert.equal(known?.retryAfterMs, 29_900);
  assert.deepEqual(known?.limits.requests, { limit: 2, remaining: 0, resetMs: 59_900 });
  assert.equal(known?.limits.tokens?.resetMs, 0, "the level never falls below zero");
  assert.equal(seen.limited(hashKey("sk-other")), undefined);
});

test("below a flood the store is asked each time", () => {
  const { seen, pass, flood } = memory();
  flood(30_000, 19);
  assert.equal(seen.limited(KEY), undefined);
  pass(250);
  flood(30_000, 19);
  assert.equal(seen.limited(KEY), undefined, "another quarter of a second");
  flood(30_000, 1);
  assert.ok(seen.limited(KEY));
});

test("a refusal with a large body counts as several, by the size of the body", () => {
  const { seen, pass, flood } = memory();
  flood(30_000, 4, 128 * 1024);
  assert.ok(seen.limited(KEY), "four requests count as twenty");
  pass(500);
  flood(30_000, 1, 600 * 1024);
  assert.equal(seen.limited(KEY), undefined);
  flood(30_000, 1, 0);
  assert.ok(seen.limited(KEY));
  pass(500);
  flood(30_000, 1, 2_000_000);
  assert.ok(seen.limited(KEY), "one request is enough");
  pass(250);
  assert.equal(seen.limited(KEY), undefined, "the limit lasts a quarter of a second");
});

test("during a flood the store is asked once every quarter of a second, and as soon as the wait is over", () => {
  const { seen, pass, flood } = memory();
  flood(30_000);
  pass(249);
  assert.ok(seen.limited(KEY));
  pass(1);
  assert.equal(seen.limited(KEY), undefined);
  flood(30_000, 1);
  for (let i = 0; i < 18; i++) assert.ok(seen.limited(KEY), "the flood continues");
  pass(250);
  flood(100, 1);
  assert.equal(seen.limited(KEY), undefined, "nineteen refusals are not a flood");
  flood(100, 19);
  pass(99);
  assert.equal(seen.limited(KEY)?.retryAfterMs, 1);
  pass(1);
  assert.equal(seen.limited(KEY), undefined);
});

test("refusals from memory keep a flood going", () => {
  const { seen, pass, flood } = memory();
  flood(30_000);
  pass(250);
  flood(30_000, 1);
  for (let i = 0; i < 19; i++) assert.ok(seen.limited(KEY));
  pass(250);
  flood(30_000, 1);
  assert.ok(seen.limited(KEY));
});

test("an answer of the store in the middle of a flood replaces the remembered one", () => {
  const { seen, pass, flood } = memory();
  flood(30_000);
  pass(100);
  flood(10_000, 1);
  pass(50);
  const known = seen.limited(KEY);
  assert.equal(known?.retryAfterMs, 9_950);
  assert.equal(known?.limits.requests?.resetMs, 59_950);
});

test("a flood that has ended is forgotten", () => {
  const { seen, pass, flood } = memory();
  flood(30_000);
  pass(500);
  flood(30_000, 1);
  assert.equal(seen.limited(KEY), undefined);
});

test("a refusal that depends on the request is not remembered", () => {
  const { seen } = memory();
  for (const cause of ["tokens", "concurrency", "insufficient_balance"] as const) {
    for (let i = 0; i < 30; i++) seen.noteLimited(KEY, refused(cause, 30_000), 0);
    assert.equal(seen.limited(KEY), undefined, cause);
  }
});
