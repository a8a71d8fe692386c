/** Three primaries with a replica each, and failovers that lose acknowledged writes. */
import { startRedisCluster, type TestCluster, type TestRedis } from "../../../rig/redis.ts";
import {
  between,
  type ChaosStore,
  cutPower,
  follows,
  freeze,
  kill,
  lag,
  order,
  type Random,
  SERVER_ARGS,
  says,
  until,
} from "./store.ts";

const ARGS = [...SERVER_ARGS, ...["--cluster-node-timeout", "1500", "--cluster-allow-replica-migration", "no"]];

/** The node that was primary at the start, and its replica. A failover swaps their roles. */
type Pair = readonly [TestRedis, TestRedis];

export async function startCluster(): Promise<ChaosStore> {
  const cluster = await startRedisCluster(ARGS, { replicas: true });
  const { servers } = cluster;
  const half = servers.length / 2;
  const pairs = servers.slice(0, half).map((server, i): Pair => [server, servers[half + i] as TestRedis]);
  return {
    // Any node reports the others. All six are configured, because a gateway may start during a failover.
    setting: `redis-cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    faults: faultsOf(cluster, pairs),
    stop: () => cluster.stop(),
  };
}

function faultsOf(cluster: TestCluster, pairs: readonly Pair[]): ChaosStore["faults"] {
  const onOne =
    (work: (primary: TestRedis, replica: TestRedis, random: Random) => Promise<void>) =>
    async (random: Random): Promise<void> => {
      const pair = pairs[Math.floor(random() * pairs.length)] as Pair;
      const [primary, replica] = (await says(pair[0], "role:master")) ? pair : ([pair[1], pair[0]] as const);
      await work(primary, replica, random);
      await settle(cluster, pair);
    };
  return {
    redis_kill: onOne((primary, _, random) => kill(primary, random)),
    redis_power_cut: onOne((primary, _, random) => cutPower(primary, random)),
    redis_freeze: onOne((primary, _, random) => freeze(primary, between(random, 200, 1_000))),
    failover_of_a_killed_primary: onOne(async (primary, replica, random) => {
      await lag(primary, replica, random);
      await primary.crash(() => promoted(replica));
    }),
    failover_of_a_frozen_primary: onOne(async (primary, replica, random) => {
      await lag(primary, replica, random);
      primary.freeze();
      await promoted(replica).finally(() => primary.thaw());
    }),
    failover_by_takeover: onOne(async (primary, replica, random) => {
      await lag(primary, replica, random);
      await order(replica, "CLUSTER", "FAILOVER", "TAKEOVER");
      await promoted(replica);
    }),
  };
}

function promoted(replica: TestRedis): Promise<void> {
  return until("the replica is promoted", () => says(replica, "role:master"));
}

/** Waits until one of the two is primary, the other follows it, and every node reports a healthy cluster. */
async function settle({ servers }: TestCluster, pair: Pair): Promise<void> {
  for (const server of pair) await order(server, "CONFIG", "SET", "masterauth", "");
  const leads = (one: TestRedis, other: TestRedis): Promise<boolean> =>
    Promise.all([says(one, "role:master"), follows(other)]).then(([first, second]) => first && second);
  // All conditions are checked again each time: a kill that took too long may become a failover during the check.
  const [one, other] = pair;
  await until("one leads, the other follows", async () => (await leads(one, other)) || (await leads(other, one)));
  await until("the cluster is well", async () => {
    const infos = await Promise.all(servers.map((server) => server.command("CLUSTER", "INFO")));
    return infos.every((info) => info.includes("cluster_state:ok"));
  });
}
