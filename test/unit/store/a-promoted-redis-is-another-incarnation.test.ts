/**
 * Invariant 33: a Redis that was a replica and is promoted may lack the last writes, so its identity is another one than
 * before, although the process is the same. While it is a replica its identity is unknown.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";

test("a Redis has no identity while it is a replica, and a new one after its promotion", async (t) => {
  const [redis, other] = [await startRedis(), await startRedis()];
  t.after(() => Promise.all([redis.stop(), other.stop()]));
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) });
  t.after(() => store.close());
  const before = await store.identity();
  await redis.command("REPLICAOF", "127.0.0.1", String(other.port));
  await assert.rejects(store.identity(), /unknown which Redis answers/);
  await redis.command("REPLICAOF", "NO", "ONE");
  const after = await store.identity();
  const [run, history] = before.split(":");
  const [runAfter, historyAfter] = after.split(":");
  assert.equal(runAfter, run);
  assert.notEqual(historyAfter, history);
});
