// docs/failure-model.md row B3, its worst form: the process is stopped, so connections succeed and no reply comes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { startRedis } from "../../rig/redis.ts";
import { stopwatch } from "../../rig/stopwatch.ts";
import { admitAsk, causeOf, makeAccount, ridOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

/** 500 ms by invariant 28, plus some room for a busy test machine. */
const LIMIT_MS = 600;

test("a Redis that does not reply is unavailable within 500 ms, and answers as before when it continues", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis, {});
  try {
    const tag = await makeAccount(store, "Frozen", { funds: 100_000n });
    redis.freeze();
    const timed = stopwatch();
    const tries = Array.from({ length: 50 }, (_, i) => store.admit(admitAsk({ tag, requestId: ridOf(i + 1) })));
    const answers = await Promise.allSettled(tries);
    const tookMs = timed();
    for (const answer of answers) {
      assert.equal(answer.status, "rejected");
      assert.ok(answer.reason instanceof StoreError && answer.reason.kind === "unavailable");
    }
    assert.ok(tookMs < LIMIT_MS, `took ${tookMs} ms`);
    await assert.rejects(store.check(), StoreError);
    redis.thaw();
    let cause = "";
    while (cause === "") cause = await store.admit(admitAsk({ tag, requestId: ridOf(99) })).then(causeOf, () => "");
    assert.equal(cause, "admitted");
  } finally {
    await store.close();
    await redis.stop();
  }
});

test("a Redis that does not run is unavailable at once, and never answers with an unknown key", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis, {});
  const tag = await makeAccount(store, "Gone");
  await redis.stop();
  try {
    const timed = stopwatch();
    await assert.rejects(store.admit(admitAsk({ tag, requestId: ridOf(1) })), StoreError);
    assert.ok(timed() < LIMIT_MS);
  } finally {
    await store.close();
  }
});
