// docs/failure-model.md row B11: requirements on a Redis are checked with INFO.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { checkFitness } from "../../../src/store/redis/connection/health.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis, startRedisCluster } from "../../rig/redis.ts";
import { PATIENT } from "./benches.ts";

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

test("a Redis without an append-only file causes a warning, or is refused if one is demanded", async () => {
  assert.deepEqual(await checked(["--appendonly", "yes"]), []);
  const [warning, ...more] = await checked([]);
  assert.match(warning ?? "", /append-only/);
  assert.deepEqual(more, [], "the warning is not repeated with each check");
  await assert.rejects(checked([], true), StoreError);
});

test("a Redis that is out of memory is unusable until it has memory again, since it answers but takes no write", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) });
  t.after(() => store.close());
  await store.check();
  await redis.command("CONFIG", "SET", "maxmemory", "1");
  await assert.rejects(store.check(), /out of memory \(maxmemory: 1 bytes\) and accepts no writes/);
  await redis.command("CONFIG", "SET", "maxmemory", "0");
  await store.check();
});

test("what waits for a slow replica does not count as memory that is full, since Redis accepts writes all the same", async (t) => {
  const buffers = ["--client-output-buffer-limit", "replica 0 0 0", "--repl-backlog-size", "16kb"];
  const redis = await startRedis({ args: buffers });
  t.after(() => redis.stop());
  const replica = await startRedis();
  t.after(() => replica.stop());
  await replica.command("REPLICAOF", "127.0.0.1", `${redis.port}`);
  while (!(await redis.command("INFO", "replication")).includes("state=online")) await setTimeout(50);
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) }, PATIENT);
  t.after(() => store.close());
  replica.freeze();
  for (let i = 0; i < 40; i++) await redis.command("SET", "value", "x".repeat(1_000_000));
  const memory = await redis.command("INFO", "memory");
  const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(memory)?.[1]);
  const [used, waiting] = [bytes("used_memory"), bytes("mem_not_counted_for_evict")];
  assert.ok(waiting > 10_000_000, `${waiting} bytes wait for the replica`);
  await redis.command("CONFIG", "SET", "maxmemory", `${used - Math.floor(waiting / 2)}`);
  assert.match(await redis.command("SET", "value", "written"), /OK/);
  await store.check();
  await redis.command("CONFIG", "SET", "maxmemory", "1");
  await assert.rejects(store.check(), /out of memory/);
});

test("a Redis that demands a replica and has none takes no write", async () => {
  await assert.rejects(checked(["--min-replicas-to-write", "1"]), /no replica that keeps up \(min-replicas-to-write\)/);
});

test("one server of a cluster without memory makes its own accounts unavailable, and all servers without memory the store", async (t) => {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  const { nodes } = cluster;
  const settings = { kind: "redis-cluster", nodes, tls: undefined, username: undefined, password: undefined } as const;
  const store = await openStore(settings, PATIENT);
  t.after(() => store.close());
  await store.check();
  const [first, ...others] = cluster.servers;
  await first?.command("CONFIG", "SET", "maxmemory", "1");
  await store.check();
  for (const other of others) await other.command("CONFIG", "SET", "maxmemory", "1");
  await assert.rejects(store.check(), /out of memory/);
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
