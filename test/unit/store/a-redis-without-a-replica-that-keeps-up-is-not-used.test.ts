/**
 * A Redis that takes no write without a replica (min-replicas-to-write) answers, and cannot be used until one keeps up:
 * readiness says so before the first charge fails.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startRedis } from "../../rig/redis.ts";
import { openUrl } from "./benches.ts";

test("a Redis that waits for a replica is not fit for use, and is again once it needs none", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  await store.check();
  await redis.command("CONFIG", "SET", "min-replicas-to-write", "1");
  await assert.rejects(store.check(), /no replica that keeps up \(min-replicas-to-write\) and accepts no writes/);
  await redis.command("CONFIG", "SET", "min-replicas-to-write", "0");
  await store.check();
});
