/** What goes through all keys of a cluster (`tollgate ledger verify`) misses none when another server takes a primary's place meanwhile. */
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout } from "node:timers/promises";
import { connect, type ScanPlace } from "../../../src/store/redis/connection/connect.ts";
import { slotOf } from "../../../src/store/redis/connection/slots.ts";
import { startRedisCluster, type TestRedis } from "../../rig/redis.ts";

const WAIT_MS_MAX = 60_000;
const POLL_MS = 20;
/** More than one part of a walk. */
const MANY = 2_500;

/** A key's tag in each third of the slots. */
const TAGS = [0, 1, 2].map((third) => {
  for (let n = 0; ; n++) if (Math.floor(slotOf(`{${n}}`) / 5_462) === third) return `{${n}}`;
});

test("keys of each primary are found, however far the walk had come", async (t) => {
  const cluster = await startRedisCluster([], { replicas: true });
  t.after(() => cluster.stop());
  const [first, second, third, ofFirst, ofSecond] = cluster.servers as TestRedis[];
  const put = async (server: TestRedis | undefined, tag: string | undefined, count: number) => {
    const keys = Array.from({ length: count }, (_, n) => `walk${n}${tag}`);
    assert.match((await server?.command("MSET", ...keys.flatMap((key) => [key, "1"]))) ?? "", /^\+OK/);
    // The replica has them before it takes the primary's place.
    assert.equal(await server?.command("WAIT", "1", "10000"), ":1\r\n");
    return keys;
  };
  const keys = [
    ...(await put(first, TAGS[0], 1)),
    ...(await put(second, TAGS[1], MANY)),
    ...(await put(third, TAGS[2], 1)),
  ];
  const connection = await connect(
    { kind: "redis-cluster", nodes: cluster.nodes, tls: false, username: undefined, password: undefined },
    () => undefined,
  );
  t.after(() => connection.close());
  const found = new Set<string>();
  const walk = async (from: ScanPlace | undefined) => {
    const part = await connection.scan("walk*", from);
    for (const key of part.keys) found.add(key);
    return part.next;
  };
  const takesPlace = async (replica: TestRedis | undefined, tag: string | undefined) => {
    assert.match((await replica?.command("CLUSTER", "FAILOVER", "TAKEOVER")) ?? "", /^\+OK/);
    const fromMs = performance.now();
    while (connection.nodeOf(`${tag}`) !== `127.0.0.1:${replica?.port}`) {
      assert.ok(performance.now() - fromMs < WAIT_MS_MAX, "the failover is not noticed");
      await connection.get(`${tag}`).catch(() => undefined);
      await setTimeout(POLL_MS);
    }
  };
  let place = await walk(undefined);
  assert.deepEqual([...found], keys.slice(0, 1));
  await takesPlace(ofFirst, TAGS[0]);
  place = await walk(place);
  const inTheMiddle = found.size;
  assert.ok(inTheMiddle > 1 && inTheMiddle < MANY);
  await takesPlace(ofSecond, TAGS[1]);
  for (let parts = 0; place !== undefined; parts++) {
    assert.ok(parts < 20, "the walk has an end");
    place = await walk(place);
  }
  assert.deepEqual([...found].sort(), keys.sort());
});
