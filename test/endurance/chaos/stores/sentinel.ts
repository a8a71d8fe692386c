/** A primary and a replica under a Sentinel, with failovers that lose acknowledged writes. */
import { startRedis, startSentinel, type TestRedis } from "../../../rig/redis.ts";
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

const NAME = "chaos";
const RULES = { "down-after-milliseconds": 1_500, "failover-timeout": 3_000 };

interface Pair {
  primary: TestRedis;
  replica: TestRedis;
  readonly sentinel: TestRedis;
}

export async function startSentinelPair(): Promise<ChaosStore> {
  const started: TestRedis[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.toReversed().map((server) => server.stop()));
  };
  const keep = async (starting: Promise<TestRedis>): Promise<TestRedis> => {
    started.push(await starting);
    return started.at(-1) as TestRedis;
  };
  try {
    const primary = await keep(startRedis({ args: SERVER_ARGS }));
    const replica = await keep(startRedis({ args: SERVER_ARGS }));
    await order(replica, "REPLICAOF", "127.0.0.1", `${primary.port}`);
    // As the primary reports it: before that, the replica confirms nothing.
    await until("the replica follows", async () => {
      return (await primary.command("INFO", "replication")).includes("state=online");
    });
    const sentinel = await keep(startSentinel(NAME, primary, RULES));
    const pair: Pair = { primary, replica, sentinel };
    return { setting: `redis-sentinel://127.0.0.1:${sentinel.port}/${NAME}`, faults: faultsOf(pair), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function faultsOf(pair: Pair): ChaosStore["faults"] {
  return {
    redis_kill: async (random) => {
      await pair.primary.crash();
      await settle(pair);
      await kill(pair.replica, random);
      await settle(pair);
    },
    redis_power_cut: async (random) => {
      await cutPower(pair.primary, random);
      await settle(pair);
    },
    redis_freeze: async (random) => {
      await freeze(pair.primary, between(random, 200, 700));
      await settle(pair);
    },
    failover_of_a_killed_primary: (random) => failover(pair, random, (promoted) => pair.primary.crash(promoted)),
    failover_of_a_frozen_primary: (random) =>
      failover(pair, random, async (promoted) => {
        pair.primary.freeze();
        await promoted().finally(() => pair.primary.thaw());
      }),
    failover_by_order: (random) =>
      failover(pair, random, async (promoted) => {
        await until("Sentinel fails over", async () => {
          return (await pair.sentinel.command("SENTINEL", "FAILOVER", NAME)).startsWith("+OK");
        });
        await promoted();
      }),
  };
}

/**
 * Waits until Sentinel reports no problem, both servers have their roles, and the replica has all data. A restarted
 * server forgets its REPLICAOF, and a restart that took too long has become a failover.
 */
async function settle(pair: Pair): Promise<void> {
  await until("one leads, the other follows", async () => {
    const told = await pair.sentinel.command("SENTINEL", "MASTER", NAME);
    if (!told.includes("\r\nflags\r\n$6\r\nmaster\r\n")) return false;
    if ((await primaryPort(pair)) !== pair.primary.port) swap(pair);
    const { primary, replica } = pair;
    for (const server of [primary, replica]) await order(server, "CONFIG", "SET", "masterauth", "");
    if (!(await says(primary, "role:master"))) await order(primary, "REPLICAOF", "NO", "ONE");
    if (await says(replica, "role:master")) await order(replica, "REPLICAOF", "127.0.0.1", `${primary.port}`);
    return follows(replica);
  });
}

function swap(pair: Pair): void {
  const { primary, replica } = pair;
  pair.primary = replica;
  pair.replica = primary;
}

async function primaryPort({ sentinel }: Pair): Promise<number> {
  const reply = await sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME);
  return Number(reply.split("\r\n")[4]);
}

/** @param lose makes the primary fail. Its argument resolves when the replica has been promoted. */
async function failover(
  pair: Pair,
  random: Random,
  lose: (promoted: () => Promise<void>) => Promise<void>,
): Promise<void> {
  await settle(pair);
  const { primary, replica } = pair;
  await lag(primary, replica, random);
  await lose(() =>
    until("the replica is promoted", async () => {
      return (await primaryPort(pair)) === replica.port && (await says(replica, "role:master"));
    }),
  );
  await settle(pair);
}
