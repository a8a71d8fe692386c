/** A single Redis, and no Redis (the embedded store). */
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { between, type ChaosStore, cutPower, freeze, kill, lasting, order, type Random, SERVER_ARGS } from "./store.ts";

/** The embedded store dies and freezes with its gateway, so it has no faults of its own. */
export async function startEmbedded(): Promise<ChaosStore> {
  return { setting: undefined, faults: {}, stop: async () => {} };
}

export async function startSingle(): Promise<ChaosStore> {
  const redis = await startRedis({ args: SERVER_ARGS });
  return {
    setting: redis.url,
    faults: {
      redis_kill: (random) => kill(redis, random),
      redis_power_cut: (random) => cutPower(redis, random),
      redis_freeze: (random) => freeze(redis, between(random, 300, 2_500)),
      redis_long_freeze: (random) => freeze(redis, between(random, 5_000, 15_000)),
      redis_forgets_scripts: () => repeated(() => order(redis, "SCRIPT", "FLUSH")),
      redis_drops_connections: () => repeated(() => order(redis, "CLIENT", "KILL", "TYPE", "normal")),
      redis_out_of_memory: (random) =>
        meanwhile(redis, random, ["CONFIG", "SET", "maxmemory", "1mb"], ["CONFIG", "SET", "maxmemory", "0"]),
      redis_user_lacks_a_right: (random) =>
        meanwhile(redis, random, ["ACL", "SETUSER", "default", "-xadd"], ["ACL", "SETUSER", "default", "+@all"]),
      redis_holds_writes: (random) => order(redis, "CLIENT", "PAUSE", `${between(random, 300, 2_500)}`, "WRITE"),
    },
    stop: () => redis.stop(),
  };
}

const TIMES = 10;
const EVERY_MS = 100;

async function repeated(work: () => Promise<void>): Promise<void> {
  for (let left = TIMES; left > 0; left--) {
    await work();
    await lasting(EVERY_MS);
  }
}

/** Breaks the server for a moment, and mends it. A script that runs at that time stops halfway. */
async function meanwhile(
  redis: TestRedis,
  random: Random,
  broken: readonly string[],
  mended: readonly string[],
): Promise<void> {
  await order(redis, ...broken);
  await lasting(between(random, 300, 2_500));
  await order(redis, ...mended);
}
