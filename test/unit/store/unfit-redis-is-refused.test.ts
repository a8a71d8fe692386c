// docs/failure-model.md row B11: what is demanded of a Redis is read from INFO.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { checkFitness } from "../../../src/store/redis/connection/health.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";

async function checked(args: readonly string[], demandAof = false): Promise<readonly string[]> {
  const redis = await startRedis({ args });
  const warnings: string[] = [];
  const url = new Secret(redis.url);
  const store = await openStore({ kind: "redis", url }, { warn: (text) => void warnings.push(text), demandAof });
  try {
    await store.check();
    await store.check();
    return warnings;
  } finally {
    await store.close();
    await redis.stop();
  }
}

test("a Redis that evicts keys is refused", async () => {
  await assert.rejects(checked(["--maxmemory-policy", "allkeys-lru"]), (error) => {
    return error instanceof StoreError && /allkeys-lru.*noeviction/.test(error.message);
  });
});

test("a Redis without an append-only file is a warning, or refused where that is demanded", async () => {
  assert.deepEqual(await checked(["--appendonly", "yes"]), []);
  const [warning, ...more] = await checked([]);
  assert.match(warning ?? "", /append-only/);
  assert.deepEqual(more, [], "it is not said again with each look");
  await assert.rejects(checked([], true), StoreError);
});

test("an old Redis and a replica are refused", () => {
  const options = { warn: () => undefined, demandAof: false };
  const info = (version: string, role: string) =>
    `redis_version:${version}\r\nrole:${role}\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n`;
  checkFitness(info("7.0.0", "master"), options);
  checkFitness(info("10.1.0", "master"), options);
  assert.throws(() => checkFitness(info("6.2.14", "master"), options), /7\.0 or later/);
  assert.throws(() => checkFitness(info("7.2.0", "slave"), options), /primary/);
  assert.throws(() => checkFitness("", options), StoreError);
});
