/** A single Redis, and no Redis (the embedded store). */
import { startRedis } from "../../../rig/redis.ts";
import { between, type ChaosStore, cutPower, freeze, kill, SERVER_ARGS } from "./store.ts";

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
    },
    stop: () => redis.stop(),
  };
}
