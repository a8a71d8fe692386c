// Row B6: Sentinel announces a failover while a gateway that has lost the primary is still asking for the new one. ioredis
// 6.0.0 gives such a connection up for good, and the gateway stayed without its store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { startRedis } from "../../rig/redis.ts";
import { startScriptedSentinel } from "../../rig/scripted-sentinel.ts";
import { makeAccount } from "./asks.ts";

/** A lost connection is reopened within a second (`RECONNECT_DELAY_MAX_MS`); the rest is for a busy machine. */
const BACK_MS_MAX = 20_000;

test("both connections of a store recover from a failover that is announced while they look up the primary", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const sentinel = await startScriptedSentinel(redis.port);
  t.after(() => sentinel.close());
  const store = await openStore({
    ...{ kind: "redis-sentinel", sentinels: [{ host: "127.0.0.1", port: sentinel.port }], name: "tollgate" },
    ...{ tls: undefined, username: undefined, password: undefined },
    ...{ sentinelUsername: undefined, sentinelPassword: undefined },
  });
  t.after(() => store.close());
  const operators = store.confirming();
  const tag = await makeAccount(store, "Found");
  await sentinel.listening(2);
  await untilAnswered("operators' writes", () => operators.setPlan(tag, "pro"));

  sentinel.hold();
  await redis.command("CLIENT", "KILL", "TYPE", "normal");
  await sentinel.waiting(2);
  await sentinel.announceFailover();
  sentinel.release();

  await untilAnswered("requests", () => store.getAccount(tag));
  await untilAnswered("operators' writes", () => operators.setPlan(tag, "free"));
  assert.equal((await store.getAccount(tag))?.plan, "free");
});

/** Retries until the store answers; a connection that is being opened refuses. */
async function untilAnswered(what: string, work: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + BACK_MS_MAX;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      await work();
      return;
    } catch (error) {
      last = error;
      await new Promise(setImmediate);
    }
  }
  assert.fail(`the connection for ${what} has not recovered: ${last}`);
}
