/** A scan of all keys of a cluster (`tollgate ledger verify`) misses none when another server becomes primary meanwhile. */
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout } from "node:timers/promises";
import { connect, type ScanPlace } from "../../../src/store/redis/connection/connect.ts";
import { slotOf } from "../../../src/store/redis/connection/slots.ts";
import { startRedisCluster, type TestRedis } from "../../rig/redis.ts";

const WAIT_MS_MAX = 60_000;
const POLL_MS = 20;
/** More keys than one part of a scan. */
const MANY = 2_500;

async function until(isSo: () => Promise<boolean>, problem: string): Promise<void> {
  const fromMs = performance.now();
  while (!(await isSo())) {
    assert.ok(performance.now() - fromMs < WAIT_MS_MAX, problem);
    await setTimeout(POLL_MS);
  }
}

/** A tag in each third of the slots. */
const TAGS = [0, 1, 2].map((third) => {
  for (let n = 0; ; n++) if (Math.floor(slotOf(`{${n}}`) / 5_462) === third) return `{${n}}`;
});

test("a scan finds the keys of each primary, however far it was when a failover happened", async (t) => {
  const cluster = await startRedisCluster([], { replicas: true });
  t.after(() => cluster.stop());
  const [first, second, third, ofFirst, ofSecond] = cluster.servers as TestRedis[];
  const [ofThird] = cluster.servers.slice(5) as TestRedis[];
  const put = async (server: TestRedis | undefined, replica: TestRedis | undefined, at: number, count: number) => {
    const keys = Array.from({ length: count }, (_, n) => `walk${n}${TAGS[at]}`);
    assert.match((await server?.command("MSET", ...keys.flatMap((key) => [key, "1"]))) ?? "", /^\+OK/);
    // The replica has them before it becomes primary.
    await until(async () => (await replica?.command("DBSIZE")) === `:${count}\r\n`, "the replica has no copy");
    return keys;
  };
  const keys = [
    ...(await put(first, ofFirst, 0, 1)),
    ...(await put(second, ofSecond, 1, MANY)),
    ...(await put(third, ofThird, 2, 1)),
  ];
  const connection = await connect(
    { kind: "redis-cluster", nodes: cluster.nodes, tls: undefined, username: undefined, password: undefined },
    () => undefined,
  );
  t.after(() => connection.close());
  const found = new Set<string>();
  const walk = async (from: ScanPlace | undefined): Promise<ScanPlace | undefined> => {
    let next: ScanPlace | undefined;
    await until(async () => {
      try {
        const part = await connection.scan("walk*", from);
        for (const key of part.keys) found.add(key);
        next = part.next;
        return true;
      } catch (error) {
        // Until the list of servers is updated, the same part is requested again.
        assert.match(String(error), /is walked through is no primary any more|to be walked through is not known/);
        return false;
      }
    }, "the failover is not noticed");
    return next;
  };
  const takesPlace = async (replica: TestRedis | undefined, tag: string | undefined) => {
    assert.match((await replica?.command("CLUSTER", "FAILOVER", "TAKEOVER")) ?? "", /^\+OK/);
    await until(async () => {
      await connection.get(`${tag}`).catch(() => undefined);
      return connection.nodeOf(`${tag}`) === `127.0.0.1:${replica?.port}`;
    }, "the failover is not noticed");
  };
  let place = await walk(undefined);
  assert.deepEqual([...found], keys.slice(0, 1));
  await takesPlace(ofFirst, TAGS[0]);
  place = await walk(place);
  const inTheMiddle = found.size;
  assert.ok(inTheMiddle > 1 && inTheMiddle < MANY);
  await takesPlace(ofSecond, TAGS[1]);
  for (let parts = 0; place !== undefined; parts++) {
    assert.ok(parts < 20, "the scan ends");
    place = await walk(place);
  }
  assert.deepEqual([...found].sort(), keys.sort());
});
